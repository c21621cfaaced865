#include <fxgraph/effects/alias_cells.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <fxgraph/ops/element.h>

namespace fx::internal {

namespace {

constexpr std::int64_t kMaxElements = 64;

/// The element that `node` takes out of its first argument, or -1 when it is no getitem or its index is not known.
std::int64_t element_index(const Node& node) {
  const std::optional<Element> taken = taken_element(node);
  return taken && taken->index < kMaxElements ? taken->index : -1;
}

/// What is written holds the rest from then on: a list its new element, a tensor another's data.
bool keeps_what_it_takes(const Node& call) {
  std::vector<const Node*> written;
  for_each_written(call, [&](const Argument& argument) {
    for_each_node(argument, [&](const Node& value) { written.push_back(&value); });
  });
  bool keeps = false;
  for_each_aliased_input(
      call, [&](const Node& input) { keeps |= std::find(written.begin(), written.end(), &input) == written.end(); });
  return keeps;
}

}  // namespace

// ── Sets of cells ────────────────────────────────────────────────────────────────────────────────────────────────────

void DisjointCells::unite(Cell a, Cell b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  parent_[b] = a;
  for (auto cell = static_cast<Cell>(next_.size()); cell < parent_.size(); ++cell) next_.push_back(cell);
  std::swap(next_[a], next_[b]);  // joins the two rings
}

void DisjointCells::part() {
  std::iota(parent_.begin(), parent_.end(), Cell{0});
  next_.clear();
}

// ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

AliasCells::AliasCells(const Graph& graph, ModuleInfo modules, bool inputs_may_alias,
                       std::function<bool(const Node& call)> is_own)
    : graph_(graph),
      modules_(std::move(modules)),
      inputs_may_alias_(inputs_may_alias),
      is_taken_for_own_(std::move(is_own)) {}

void AliasCells::reserve(std::size_t nodes) {
  values_.resize(graph_.id_bound());
  united_.reserve(nodes);
  external_.reserve(nodes);
}

bool AliasCells::classify(const Node& node, const NodeEffects& effects) {
  if (node.id() >= values_.size()) values_.resize(std::max<std::size_t>(graph_.id_bound(), node.id() + 1));
  if (!unions_.empty() || !named_.empty()) let_go(node);
  gathered_.clear();
  switch (node.op()) {
    case Op::placeholder:
      if (!inputs_may_alias_) return set_own(node, true);
      if (!inputs_) inputs_ = 1 + new_cell(true);
      gathered_.push_back(inputs_ - 1);
      break;
    case Op::get_attr: {
      Attribute& named = attribute(node.target());
      if (values_[node.id()].count == 0) hold(named);
      gathered_.push_back(named.cell);
      break;
    }
    case Op::output: return false;
    default: return classify_call(node, effects);
  }
  return set(node);
}

bool AliasCells::classify_call(const Node& node, const NodeEffects& effects) {
  if (effects.unknown && runs_graphs(node)) {  // who writes to the graph writes to what it holds
    node.for_each_input([&](const Node& input) {
      if (!input.is(Op::get_attr)) return;
      const Cell cells[] = {attribute(input.target()).cell, module_cell(node, input.target())};
      unite_for(node, cells);
    });
  }
  const bool state = node.is(Op::call_module) && (effects.writes || effects.unknown || effects.may_alias_state);
  const Cell held = state ? module_cell(node, node.target()) : 0;
  if (is_taken_for_own_ && is_taken_for_own_(node)) return set_own(node, false);
  if (!effects.may_alias) return set_own_elements(node);
  if (gather_element(node)) return set(node);
  if (effects.unknown) {
    node.for_each_input([&](Node& input) { gather(input); });
  } else {
    std::size_t inputs = 0;
    const auto add = [&](Node& input) {
      ++inputs;
      gather(input);
    };
    for_each_aliased_input(node, add, modules_);
    if (effects.writes && inputs > 1 && !node.is(Op::call_module) && keeps_what_it_takes(node))
      unite_for(node, gathered_);
  }
  if (effects.may_alias_state && state) gathered_.push_back(held);
  if (gathered_.empty()) return set_own(node, false);
  std::sort(gathered_.begin(), gathered_.end());
  gathered_.erase(std::unique(gathered_.begin(), gathered_.end()), gathered_.end());
  if (gathered_.size() > kMaxCells) {
    unite_for(node, gathered_);
    gathered_.resize(1);
  }
  return set(node);
}

void AliasCells::gather(const Node& input) {
  const std::span<const Cell> cells = of(input);
  gathered_.insert(gathered_.end(), cells.begin(), cells.end());
}

bool AliasCells::set_own(const Node& node, bool external) {
  CellList& value = values_[node.id()];
  if (value.own && value.count == 1) return false;
  value = {new_cell(external), 1, true};
  return true;
}

/// What an operator makes as a tuple is not one storage: each element that is taken out gets a cell of its own.
bool AliasCells::set_own_elements(const Node& node) {
  const std::uint32_t count = node.id() < elements_.size() ? elements_[node.id()] : 0;
  if (count < 2) return set_own(node, false);
  CellList& value = values_[node.id()];
  if (value.own && value.count == count) return false;
  std::vector<Cell> before;
  if (value.own) before.assign(value.in(lists_).begin(), value.in(lists_).end());
  const auto at = static_cast<std::uint32_t>(lists_.size());
  for (std::uint32_t i = 0; i < count; ++i) lists_.push_back(i < before.size() ? before[i] : new_cell(false));
  value = {at, count, true};
  return true;
}

void AliasCells::find_elements() {
  for (const Symbol target : {python::kGetItem, python::kGetAttr}) {
    for (const Node* node : graph_.find_nodes(Op::call_function, target)) {
      const std::int64_t index = element_index(*node);
      if (index < 0) continue;
      if (elements_.empty()) elements_.resize(graph_.id_bound(), 0);
      std::uint8_t& count = elements_[node->args()[0].node().id()];
      count = std::max(count, static_cast<std::uint8_t>(index + 1));
    }
  }
}

void AliasCells::count_elements(const Node& tuple) {
  std::int64_t last = -1;
  for (const Node& user : tuple.users()) {
    if (!is_gone(user)) last = std::max(last, element_index(user));
  }
  if (elements_.size() <= tuple.id()) elements_.resize(graph_.id_bound(), 0);
  elements_[tuple.id()] = static_cast<std::uint8_t>(last + 1);
}

bool AliasCells::gather_element(const Node& node) {
  const std::int64_t index = element_index(node);
  if (index < 0) return false;
  const Node& tuple = node.args()[0].node();
  const std::span<const Cell> cells = of(tuple);
  if (cells.size() < 2 || !values_[tuple.id()].own || static_cast<std::size_t>(index) >= cells.size()) return false;
  gathered_.push_back(cells[static_cast<std::size_t>(index)]);
  return true;
}

/// Gives the node what was gathered.
bool AliasCells::set(const Node& node) {
  CellList& value = values_[node.id()];
  if (!value.own && std::ranges::equal(value.in(lists_), gathered_)) return false;
  value = {gathered_[0], static_cast<std::uint32_t>(gathered_.size()), false};
  if (value.count == 1) return true;
  value.at = static_cast<std::uint32_t>(lists_.size());
  lists_.insert(lists_.end(), gathered_.begin(), gathered_.end());
  return true;
}

Cell AliasCells::new_cell(bool external) {
  external_.push_back(external);
  return united_.add();
}

void AliasCells::forget(const Node& node) {
  if (node.id() >= values_.size()) return;
  let_go(node);
  CellList& value = values_[node.id()];
  if (node.is(Op::get_attr) && value.count > 0 && --attribute(node.target()).holders == 0) unite_all();
  value = {kGone, 0, false};
}

// ── Attributes and modules ───────────────────────────────────────────────────────────────────────────────────────────

AliasCells::Attribute& AliasCells::attribute(Symbol path) {
  if (const std::uint32_t* known = attribute_at_.find(path.id())) return attributes_[*known];
  const Symbol shared = modules_.storage_of(path);
  const Cell cell = shared == path ? new_cell(true) : attribute(shared).cell;
  attribute_at_[path.id()] = static_cast<std::uint32_t>(attributes_.size());
  attributes_.push_back({{cell, 0}, path});
  if (!modules_.state) {
    const std::string_view text = path.view();
    for (std::size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.', dot + 1))
      below_[text.substr(0, dot)].push_back(path);
  }
  return attributes_.back();
}

/// A node that reads the attribute is there.
void AliasCells::hold(Attribute& named) {
  if (named.holders++ > 0 || modules_.state || module_cells_.empty()) return;
  const std::string_view text = named.path.view();
  for (std::size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.', dot + 1)) {
    const Symbol module = Symbol::find(text.substr(0, dot));
    const auto known = module.empty() ? module_cells_.end() : module_cells_.find(module);
    if (known != module_cells_.end() && known->second.holders > 0) united_.unite(known->second.cell, named.cell);
  }
}

/// The cell of what the module holds, while `node` is there.
Cell AliasCells::module_cell(const Node& node, Symbol path) {
  const auto [at, is_new] = module_cells_.try_emplace(path);
  // What is told of its state makes it external: an activation in place has none.
  if (is_new) at->second.cell = new_cell(!modules_.state);
  if (follows_edits_) named_[node.id()].push_back(path);
  if (at->second.holders++ == 0) unite_state(path, at->second.cell);
  return at->second.cell;
}

/// A module that writes its state writes the tensors that it holds: as the program says, or those below its path.
void AliasCells::unite_state(Symbol module, Cell cell) {
  if (modules_.state) {
    modules_.state(module, [&](Symbol storage) { united_.unite(cell, attribute(storage).cell); });
    return;
  }
  const auto below = below_.find(module.view());
  if (below == below_.end()) return;
  for (const Symbol path : below->second) {
    const Attribute& named = attribute(path);
    if (named.holders > 0) united_.unite(cell, named.cell);
  }
}

void AliasCells::unite_for(const Node& node, std::span<const Cell> cells) {
  for (const Cell cell : cells) united_.unite(cells[0], cell);
  if (!follows_edits_) return;
  std::vector<Cell>& united = unions_[node.id()];
  for (const Cell cell : cells) united.insert(united.end(), {cells[0], cell});
}

/// What the node united is not one any more, unless others unite it too.
void AliasCells::let_go(const Node& node) {
  bool parts = unions_.erase(node.id()) > 0;
  if (const auto named = named_.find(node.id()); named != named_.end()) {
    for (const Symbol path : named->second) parts |= --module_cells_.find(path)->second.holders == 0;
    named_.erase(named);
  }
  if (parts) unite_all();
}

void AliasCells::unite_all() {
  united_.part();
  for (const auto& [node, cells] : unions_) {  // in any order: the sets are the same
    for (std::size_t i = 0; i < cells.size(); i += 2) united_.unite(cells[i], cells[i + 1]);
  }
  for (const auto& [path, held] : module_cells_) {
    if (held.holders > 0) unite_state(path, held.cell);
  }
}

// ── What calls touch ─────────────────────────────────────────────────────────────────────────────────────────────────

void AliasCells::for_each_written(const Node& call, const NodeEffects& effects,
                                  const std::function<void(Cell)>& visit) const {
  if (!effects.writes && !effects.unknown) return;
  const auto visit_all = [&](const Node& value) {
    for (const Cell cell : of(value)) visit(cell);
  };
  if (effects.unknown) {
    call.for_each_input(visit_all);
  } else {
    fx::for_each_written(
        call, [&](const Argument& written) { for_each_node(written, visit_all); }, modules_);
  }
  if (!call.is(Op::call_module)) return;
  const auto held = module_cells_.find(call.target());
  if (held != module_cells_.end() && held->second.holders > 0) visit(held->second.cell);
}

void AliasCells::for_each_state(const Node& call, const NodeEffects& effects,
                                const std::function<void(Cell)>& visit) const {
  if (call.is(Op::call_module)) {
    visit_state(call.target(), visit);
  } else if (effects.unknown && runs_graphs(call)) {
    call.for_each_input([&](const Node& input) {
      if (input.is(Op::get_attr)) visit_state(input.target(), visit);
    });
  }
}

void AliasCells::visit_state(Symbol module, const std::function<void(Cell)>& visit) const {
  const auto visit_attribute = [&](Symbol path) {
    const std::uint32_t* at = attribute_at_.find(path.id());
    if (at && (modules_.state || attributes_[*at].holders > 0)) visit(attributes_[*at].cell);
  };
  if (modules_.state) {
    modules_.state(module, visit_attribute);
  } else if (const auto below = below_.find(module.view()); below != below_.end()) {
    for (const Symbol path : below->second) visit_attribute(path);
  }
  const auto held = module_cells_.find(module);
  if (held != module_cells_.end() && held->second.holders > 0) visit(held->second.cell);
}

}  // namespace fx::internal
