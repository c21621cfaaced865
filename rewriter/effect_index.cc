#include <fxgraph/rewriter/effect_index.h>

#include <algorithm>
#include <utility>

#include <fxgraph/ops/element.h>

namespace fx::internal {

namespace {

/// What nobody has declared to be a view is taken to be a value of its own; but a module that was looked at, and a
/// graph, may return what it is given.
bool is_guess(const Node& node, const NodeEffects& effects, const ModuleEffects& modules) {
  if (node.is(Op::call_module)) return !modules;
  return effects.unknown && !runs_graphs(node);
}

bool is_below(std::string_view path, std::string_view module) {
  return path.starts_with(module) && path.substr(module.size()).starts_with('.');
}

std::int64_t literal_index(const Node& node) {
  const std::optional<Element> taken = taken_element(node);
  return taken ? taken->index : -1;
}

}  // namespace

EffectIndex::EffectIndex(const Graph& graph, ModuleEffects modules) : graph_(graph), modules_(std::move(modules)) {
  // Mostly nothing has effects, and the targets say so.
  const bool pure = !graph.any_called([&](Op op, Symbol target) {
    const std::optional<NodeEffects> effects = effects_of_each(op, target, modules_);
    return !effects || effects->impure();
  });
  if (pure) return;
  for (Node& node : const_cast<Graph&>(graph).nodes()) {
    const NodeEffects effects = of(node);
    if (!effects.impure()) continue;
    impure_.insert(impure_.end(), &node);
    writes_ |= effects.writes || effects.unknown;
  }
  if (writes_) build();
}

NodeEffects EffectIndex::of_unknown(const Node& node, NodeEffects effects) {
  if (runs_graphs(node)) effects.random = effects.side_effect = true;
  return effects;
}

// ── Classes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

void EffectIndex::build() {
  built_ = true;
  for (Node& node : const_cast<Graph&>(graph_).nodes()) classify(node);
  for (Node* node : impure_) note_write(*node);
}

void EffectIndex::reserve(Cell cell) {
  for (auto at = static_cast<Cell>(parent_.size()); at <= cell; ++at) {
    parent_.push_back(at);
    next_.push_back(at);
  }
}

EffectIndex::Cell EffectIndex::new_cell() {
  const Cell made = next_odd_;
  next_odd_ += 2;
  reserve(made);
  return made;
}

EffectIndex::Cell EffectIndex::storage_cell(Symbol storage) {
  const auto [at, is_new] = storage_cells_.emplace(storage, 0);
  if (!is_new) return at->second;
  const Cell made = at->second = new_cell();
  storages_.emplace_back(storage, made);
  if (modules_.state) return made;
  for (const auto& [module, cells] : states_) {
    if (is_below(storage.view(), module.view())) unite(cells[0], made);
  }
  return made;
}

// A module that nobody says the tensors of has one cell, joined by the attributes below its path.
const std::vector<EffectIndex::Cell>& EffectIndex::state_cells(Symbol module) {
  const auto known = states_.find(module);
  if (known != states_.end()) return known->second;
  std::vector<Cell> cells;
  if (modules_.state) {
    modules_.state(module, [&](Symbol storage) { cells.push_back(storage_cell(storage)); });
  } else {
    cells.push_back(new_cell());
    for (const auto& [storage, cell] : storages_) {
      if (is_below(storage.view(), module.view())) unite(cells[0], cell);
    }
  }
  return states_.emplace(module, std::move(cells)).first->second;
}

void EffectIndex::classify(Node& node) {
  if (node.is(Op::get_attr)) {
    const Symbol storage = modules_.storage_of(node.target());
    attributes_.emplace(storage, node.id());
    unite(storage_cell(storage), cell_of(node));
  }
  const NodeEffects effects = of(node);
  if (node.is(Op::call_module)) {
    const std::vector<Cell>& state = state_cells(node.target());
    if (effects.may_alias_state) {
      for (const Cell cell : state) unite(cell, cell_of(node));
    }
  }
  if (!effects.may_alias) return;
  if (runs_graphs(node)) {
    node.for_each_input([&](const Node& input) {
      if (!input.is(Op::get_attr)) return;
      for (const Cell cell : state_cells(input.target())) unite(cell, cell_of(input));
    });
  }
  for_each_aliased_input(
      node, [&](Node& input) { unite(cell_of(input), cell_of(node)); }, modules_);
}

void EffectIndex::note_write(Node& node) {
  const NodeEffects effects = of(node);
  for_each_written_class(node, [&](Class written) { add_writer(written, node, effects.restructures); });
}

void EffectIndex::add_writer(Cell cell, Node& node, bool restructures) {
  reserve(cell);
  Written& written = written_[root(cell)];
  written.restructured |= restructures;
  const auto at = std::lower_bound(written.writers.begin(), written.writers.end(), &node, GraphOrder{});
  if (at != written.writers.end() && *at == &node) return;
  written.writers.insert(at, &node);
  noted_[&node].push_back(cell);
}

void EffectIndex::unite(Cell a, Cell b) {
  reserve(std::max(a, b));
  a = root(a);
  b = root(b);
  if (a == b) return;
  parent_[b] = a;
  std::swap(next_[a], next_[b]);  // joins the two rings
  const auto other = written_.find(b);
  if (other == written_.end()) return;
  const Written moved = std::move(other->second);
  written_.erase(other);
  Written& all = written_[a];
  std::vector<Node*> merged;
  std::set_union(all.writers.begin(), all.writers.end(), moved.writers.begin(), moved.writers.end(),
                 std::back_inserter(merged), GraphOrder{});
  all.writers = std::move(merged);
  all.restructured |= moved.restructured;
}

EffectIndex::Cell EffectIndex::root(Cell cell) const {
  while (parent_[cell] != cell) cell = parent_[cell] = parent_[parent_[cell]];
  return cell;
}

// ── Edits ────────────────────────────────────────────────────────────────────────────────────────────────────────────

void EffectIndex::add(Node& node) {
  const NodeEffects effects = of(node);
  const bool impure = effects.writes || effects.random || effects.side_effect;
  if (impure) impure_.insert(&node);
  if (effects.writes || (effects.unknown && runs_graphs(node))) expect_writes();
  if (!built_) return;
  classify(node);
  if (impure) note_write(node);
}

void EffectIndex::changed(Node& node) {
  if (!built_) return;
  classify(node);
  if (impure_.count(&node)) note_write(node);
}

void EffectIndex::expect_writes() {
  writes_ = true;
  if (!built_) build();
}

void EffectIndex::remove(Node& node) {
  if (impure_.empty() || impure_.erase(&node) == 0) return;
  const auto noted = noted_.find(&node);
  if (noted == noted_.end()) return;
  for (const Cell cell : noted->second) {
    std::vector<Node*>& writers = written_[root(cell)].writers;
    const auto at = std::lower_bound(writers.begin(), writers.end(), &node, GraphOrder{});
    if (at != writers.end() && *at == &node) writers.erase(at);
  }
  noted_.erase(noted);
}

// ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

std::vector<Node*> EffectIndex::between(const Node& first, const Node& last) const {
  std::vector<Node*> found;
  for (auto at = impure_.upper_bound(const_cast<Node*>(&first)); at != impure_.end() && (*at)->is_before(last); ++at)
    found.push_back(*at);
  return found;
}

EffectIndex::Class EffectIndex::alias_class(const Node& node) const {
  const Cell cell = cell_of(node);
  return cell < parent_.size() ? root(cell) : cell;
}

EffectIndex::Class EffectIndex::attribute_class(Symbol path) { return root(storage_cell(modules_.storage_of(path))); }

std::span<Node* const> EffectIndex::writers(Class alias_class) const {
  const auto at = written_.find(alias_class);
  return at == written_.end() ? std::span<Node* const>() : std::span<Node* const>(at->second.writers);
}

Node* EffectIndex::last_write(Class alias_class) const {
  const std::span<Node* const> all = writers(alias_class);
  return all.empty() ? nullptr : all.back();
}

Node* EffectIndex::write_between(Class alias_class, const Node& first, const Node& last) const {
  const std::span<Node* const> all = writers(alias_class);
  const auto at = std::lower_bound(all.begin(), all.end(), &last, GraphOrder{});
  return at != all.begin() && first.is_before(*at[-1]) ? at[-1] : nullptr;
}

bool EffectIndex::is_returned(Class alias_class) const {
  bool found = false;
  if (const Node* output = graph_.output_node())
    output->for_each_input([&](const Node& result) { found |= this->alias_class(result) == alias_class; });
  return found;
}

bool EffectIndex::is_restructured(Class alias_class) const {
  const auto at = written_.find(alias_class);
  return at != written_.end() && at->second.restructured;
}

Node* EffectIndex::attribute(Symbol path) const {
  const auto at = attributes_.find(modules_.storage_of(path));
  return at == attributes_.end() ? nullptr : graph_.node_by_id(at->second);
}

std::vector<Node*> EffectIndex::members(const Node& node) const {
  std::vector<Node*> found;
  const Cell start = cell_of(node);
  Cell at = start;
  do {
    Node* member = at % 2 == 0 ? graph_.node_by_id(at / 2) : nullptr;
    if (member) found.push_back(member);
    at = at < next_.size() ? next_[at] : start;
  } while (at != start);
  return found;
}

// ── What is sure ─────────────────────────────────────────────────────────────────────────────────────────────────────

const Node* EffectIndex::viewed(const Node& node, bool& own) const {
  own = false;
  if (node.is(Op::placeholder) || node.is(Op::get_attr)) return nullptr;
  const NodeEffects effects = of(node);
  own = !effects.may_alias || is_guess(node, effects, modules_);
  if (!effects.aliases) return nullptr;
  const Node* only = nullptr;
  bool several = false;
  for_each_aliased_input(
      node,
      [&](Node& input) {
        several |= only && only != &input;
        only = &input;
      },
      modules_);
  return several ? nullptr : only;
}

EffectIndex::Origin EffectIndex::origin_of(const Node& value) const {
  const Node* at = &value;
  std::int64_t element = -1;
  for (int steps = 0; steps < kMostViews; ++steps) {
    bool own = false;
    const Node* source = viewed(*at, own);
    if (!source) {
      const Symbol storage = at->is(Op::get_attr) ? modules_.storage_of(at->target()) : Symbol();
      return {at, storage, element, own};
    }
    // The index that was applied to the tuple itself; a view of a tensor by a number keeps its storage.
    bool source_own = false;
    const bool to_the_end = !viewed(*source, source_own);
    element = to_the_end && (source_own || source->is(Op::placeholder)) ? literal_index(*at) : -1;
    at = source;
  }
  return {&value, {}, -1, false};
}

bool EffectIndex::may_share(const Node& user, const Node& value) const {
  if (!of(user).may_alias) return false;
  bool found = false;
  for_each_aliased_input(
      user, [&](Node& input) { found |= &input == &value; }, modules_);
  return found;
}

bool EffectIndex::escapes(const Node& value) const {
  return any_use(value, [](const Node& user) { return user.is(Op::output); });
}

}  // namespace fx::internal
