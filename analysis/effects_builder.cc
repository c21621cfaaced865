#include <fxgraph/analysis/effects_builder.h>

#include <algorithm>

#include <fxgraph/ops/element.h>

namespace fx {

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

EffectsBuilder::EffectsBuilder(const Graph& graph, const EffectsOptions& options, Effects& result)
    : graph_(graph), options_(options), result_(result) {}

void EffectsBuilder::build() {
  result_.effects_.resize(graph_.id_bound());
  result_.values_.resize(graph_.id_bound());
  cells_.reserve(graph_.size());
  external_.reserve(graph_.size());
  result_.written_start_.push_back(0);
  order_.reserve(graph_.size());
  ids_.reserve(graph_.size());
  for (const Node& node : graph_.nodes()) {
    order_.push_back(const_cast<Node*>(&node));
    ids_.push_back(node.id());
    switch (node.op()) {
      case Op::placeholder:
        if (!options_.inputs_may_alias || !inputs_) inputs_ = 1 + external_cell(true);
        result_.values_[node.id()] = {inputs_ - 1, 1};
        break;
      case Op::get_attr: result_.values_[node.id()] = {attribute_cell(node.target()), 1}; break;
      case Op::output: break;
      default: add_call(node);
    }
  }
  join_module_state();
  add_state_reads();
  number_sets();
  fill_members();
  fill_writers();
  fill_state_readers();
}

DisjointCells::Cell EffectsBuilder::external_cell(bool external) {
  external_.push_back(external);
  return cells_.add();
}

DisjointCells::Cell EffectsBuilder::attribute_cell(Symbol path) {
  Cell& cell = attributes_[path.id()];
  if (!cell) {
    const Cell made = external_cell(true);
    cell = 1 + made;
    attribute_paths_.push_back(path);
    const Symbol shared = options_.modules.storage_of(path);
    if (shared != path) cells_.unite(attribute_cell(shared), made);
    return made;
  }
  return cell - 1;
}

DisjointCells::Cell EffectsBuilder::module_cell(Symbol path) {
  Cell& cell = modules_[path.id()];
  if (!cell) {
    // What is told of its state makes it external (join_module_state): an activation in place has none.
    cell = 1 + external_cell(!options_.modules.state);
    module_cells_.emplace_back(path, cell - 1);
  }
  return cell - 1;
}

void EffectsBuilder::gather(const Node& input) {
  for (const Cell cell : result_.values_[input.id()].span(result_.lists_)) gathered_.push_back(cells_.find(cell));
}

void EffectsBuilder::add_call(const Node& node) {
  const NodeEffects effects = result_.effects_[node.id()] = effects_of(node, options_.modules);
  if (effects.unknown && runs_graphs(node)) {  // who writes to the graph writes to what it holds
    node.for_each_input([&](const Node& input) {
      if (input.is(Op::get_attr)) cells_.unite(attribute_cell(input.target()), module_cell(input.target()));
    });
  }
  if (effects.impure()) add_writes(node, effects);
  if (!effects.may_alias) {
    if (!add_tuple(node)) set_fresh(node);
    return;
  }
  if (add_element(node)) return;
  gathered_.clear();
  if (effects.unknown) {
    node.for_each_input([&](Node& input) { gather(input); });
  } else {
    std::size_t inputs = 0;
    const auto add = [&](Node& input) {
      ++inputs;
      gather(input);
    };
    for_each_aliased_input(node, add, options_.modules);
    if (effects.writes && inputs > 1 && !node.is(Op::call_module) && keeps_what_it_takes(node)) {
      for (const Cell cell : gathered_) cells_.unite(gathered_[0], cell);
    }
  }
  if (effects.may_alias_state && node.is(Op::call_module)) gathered_.push_back(module_cell(node.target()));
  set_cells(node);
}

/// What an operator makes as a tuple is not one storage: each element that is taken out gets a cell of its own.
bool EffectsBuilder::add_tuple(const Node& node) {
  const auto users = node.users();
  if (users.begin() == users.end() || element_index(*users.begin()) < 0) return false;
  std::int64_t last = 0;
  for (const Node& user : users) last = std::max(last, element_index(user));
  if (last == 0) return false;
  if (is_tuple_.empty()) is_tuple_.resize(graph_.id_bound(), false);
  is_tuple_[node.id()] = true;
  const auto at = static_cast<std::uint32_t>(result_.lists_.size());
  for (std::int64_t i = 0; i <= last; ++i) result_.lists_.push_back(external_cell(false));
  result_.values_[node.id()] = {at, static_cast<std::uint32_t>(last + 1)};
  return true;
}

bool EffectsBuilder::add_element(const Node& node) {
  const std::int64_t index = element_index(node);
  if (index < 0 || is_tuple_.empty()) return false;
  const Node& tuple = node.args()[0].node();
  if (!is_tuple_[tuple.id()]) return false;
  result_.values_[node.id()] = {result_.lists_[result_.values_[tuple.id()].at + static_cast<std::size_t>(index)], 1};
  return true;
}

void EffectsBuilder::sort_gathered() {
  std::sort(gathered_.begin(), gathered_.end());
  gathered_.erase(std::unique(gathered_.begin(), gathered_.end()), gathered_.end());
}

void EffectsBuilder::set_cells(const Node& node) {
  sort_gathered();
  if (gathered_.empty()) return set_fresh(node);
  if (gathered_.size() > Effects::kMaxSets) {
    for (const Cell cell : gathered_) cells_.unite(gathered_[0], cell);
    gathered_.resize(1);
  }
  result_.values_[node.id()] = listed();
}

void EffectsBuilder::add_writes(const Node& node, const NodeEffects& effects) {
  Node* writer = const_cast<Node*>(&node);
  gathered_.clear();
  if (effects.unknown) {
    node.for_each_input([&](Node& input) { gather(input); });
  } else if (effects.writes) {
    const auto gather_all = [&](const Argument& argument) {
      for_each_node(argument, [&](Node& written) { gather(written); });
    };
    for_each_written(node, gather_all, options_.modules);
  }
  if (effects.writes && node.is(Op::call_module)) gathered_.push_back(module_cell(node.target()));
  for (const Cell cell : gathered_) writes_.push_back({cell, writer});
  result_.written_.insert(result_.written_.end(), gathered_.begin(), gathered_.end());
  result_.impure_.push_back(writer);
  result_.written_start_.push_back(static_cast<std::uint32_t>(result_.written_.size()));
}

/// A module that writes its state writes the tensors that it holds: as the program says, or those below its path.
void EffectsBuilder::join_module_state() {
  if (options_.modules.state) {
    for (const auto& [module, cell] : module_cells_) {
      options_.modules.state(module, [&, cell = cell](Symbol storage) { cells_.unite(cell, attribute_cell(storage)); });
    }
    return;
  }
  for (const Symbol path : attribute_paths_) {
    const std::string_view text = path.view();
    for (std::size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.', dot + 1)) {
      const Symbol prefix = Symbol::find(text.substr(0, dot));
      const Cell* module = prefix.empty() ? nullptr : modules_.find(prefix.id());
      if (module) cells_.unite(*module - 1, attribute_cell(path));
    }
  }
}

/// What calls read beside their inputs, as far as somebody writes there.
void EffectsBuilder::add_state_reads() {
  if (writes_.empty()) return;
  is_written_.resize(cells_.size());
  for (const Write& write : writes_) is_written_[cells_.find(write.cell)] = true;
  FlatMap<std::uint32_t> known;  // by module; 1 + the index in `states`
  std::vector<Effects::Value> states;
  const auto state_of = [&](Symbol module) {
    std::uint32_t& index = known[module.id()];
    if (!index) {
      states.push_back(written_state(module));
      index = static_cast<std::uint32_t>(states.size());
    }
    return states[index - 1];
  };
  const auto note = [&](const Node& node, const Effects::Value& state) {
    if (!state.count) return;
    if (result_.states_.empty()) result_.states_.resize(graph_.id_bound());
    result_.states_[node.id()] = state;
  };
  for (const Node* node : order_) {
    if (node->is(Op::call_module)) {
      note(*node, state_of(node->target()));
    } else if (result_.effects_[node->id()].unknown && runs_graphs(*node)) {
      std::vector<Cell> all;
      node->for_each_input([&](const Node& input) {
        if (!input.is(Op::get_attr)) return;
        const Effects::Value state = state_of(input.target());
        const auto cells = state.span(result_.lists_);
        all.insert(all.end(), cells.begin(), cells.end());
      });
      gathered_ = std::move(all);
      note(*node, listed());
    }
  }
}

/// The written ones among the cells of what the module holds.
Effects::Value EffectsBuilder::written_state(Symbol module) {
  gathered_.clear();
  const auto add = [&](Symbol path) {
    const Cell* cell = attributes_.find(path.id());  // what nobody named, nobody wrote to
    if (cell && is_written_[cells_.find(*cell - 1)]) gathered_.push_back(cells_.find(*cell - 1));
  };
  if (options_.modules.state) {
    options_.modules.state(module, add);
  } else {
    const std::string below = module.str() + ".";
    for (const Symbol path : attribute_paths_) {
      if (path.view().starts_with(below)) add(path);
    }
  }
  const Cell* own = modules_.find(module.id());
  if (own && is_written_[cells_.find(*own - 1)]) gathered_.push_back(cells_.find(*own - 1));
  return listed();
}

/// What was gathered, each once, as a list; none for nothing.
Effects::Value EffectsBuilder::listed() {
  sort_gathered();
  Effects::Value value;
  value.count = static_cast<std::uint32_t>(gathered_.size());
  if (gathered_.empty()) return value;
  value.at = gathered_[0];
  if (value.count == 1) return value;
  value.at = static_cast<std::uint32_t>(result_.lists_.size());
  result_.lists_.insert(result_.lists_.end(), gathered_.begin(), gathered_.end());
  return value;
}

/// From here on, what were cells are sets.
void EffectsBuilder::number_sets() {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<Effects::Set> set_of(cells_.size(), kNone);
  for (Cell cell = 0; cell < cells_.size(); ++cell) {
    // Roots have the smallest number of their set, so they come first.
    const Cell root = cells_.find(cell);
    if (root == cell) {
      set_of[cell] = static_cast<Effects::Set>(result_.external_.size());
      result_.external_.push_back(external_[cell]);
    } else {
      set_of[cell] = set_of[root];
      if (external_[cell]) result_.external_[set_of[cell]] = true;
    }
  }
  for (Effects::Value& value : result_.values_) {
    if (value.count == 1) value.at = set_of[value.at];
  }
  for (Effects::Value& value : result_.states_) {
    if (value.count == 1) value.at = set_of[value.at];
  }
  for (Effects::Set& set : result_.lists_) set = set_of[set];
  for (Effects::Set& set : result_.written_) set = set_of[set];
  for (Write& write : writes_) write.cell = set_of[write.cell];
}

/// Calls `for_each` twice with a function of a set and a node in it, in graph order: to count, and to fill.
template <typename ForEach>
void EffectsBuilder::fill(Effects::Table& table, const ForEach& for_each) {
  table.starts.assign(result_.external_.size() + 1, 0);
  for_each([&](Effects::Set set, Node*) { ++table.starts[set + 1]; });
  std::partial_sum(table.starts.begin(), table.starts.end(), table.starts.begin());
  table.nodes.resize(table.starts.back());
  std::vector<std::uint32_t> next(table.starts.begin(), table.starts.end() - 1);
  for_each([&](Effects::Set set, Node* node) { table.nodes[next[set]++] = node; });
}

void EffectsBuilder::fill_members() {
  fill(result_.members_, [&](const auto& visit) {
    for (std::size_t place = 0; place < ids_.size(); ++place) {
      const Effects::Value& value = result_.values_[ids_[place]];
      if (value.count == 1) {
        visit(value.at, order_[place]);
        continue;
      }
      const auto sets = value.span(result_.lists_);
      for (std::size_t i = 0; i < sets.size(); ++i) {
        // Cells of one list may have become one set.
        const auto earlier = sets.first(i);
        if (std::find(earlier.begin(), earlier.end(), sets[i]) == earlier.end()) visit(sets[i], order_[place]);
      }
    }
  });
}

void EffectsBuilder::fill_writers() {
  // Cells that were united later may give a node two writes to one set; they are neighbours within the node's.
  std::vector<Node*> last(writes_.empty() ? 0 : result_.external_.size(), nullptr);
  std::erase_if(writes_, [&](const Write& write) { return std::exchange(last[write.cell], write.node) == write.node; });
  fill(result_.writers_, [&](const auto& visit) {
    for (const Write& write : writes_) visit(write.cell, write.node);
  });
}

void EffectsBuilder::fill_state_readers() {
  fill(result_.state_readers_, [&](const auto& visit) {
    if (result_.states_.empty()) return;
    for (std::size_t place = 0; place < ids_.size(); ++place) {
      for (const Effects::Set set : result_.states_[ids_[place]].span(result_.lists_)) visit(set, order_[place]);
    }
  });
}

}  // namespace fx
