// One walk along the graph gives every value its cells; at the end the cells are renumbered as sets.
#include <fxgraph/analysis/effects.h>

#include <algorithm>
#include <numeric>

#include <fxgraph/support/flat_map.h>

namespace fx {

using internal::CellList;

class EffectsBuilder {
 public:
  EffectsBuilder(const Graph& graph, const EffectsOptions& options, Effects& result);
  void build();

 private:
  using Cell = internal::Cell;
  struct Write {
    Cell cell;
    Node* node;
  };

  void add_writes(const Node& node, const NodeEffects& effects);
  void add_state_reads();
  internal::CellList written_state(const Node& call);
  internal::CellList listed();
  void number_sets();
  template <typename ForEach>
  void fill(Effects::Table& table, const ForEach& for_each);
  void fill_members();
  void fill_writers();
  void fill_state_readers();

  const Graph& graph_;
  const EffectsOptions& options_;
  Effects& result_;
  internal::AliasCells cells_;
  std::vector<Node*> order_;        // the nodes: later passes need not walk the list again
  std::vector<std::uint32_t> ids_;  // of them: nor look into them
  std::vector<Cell> gathered_;
  std::vector<Write> writes_;
  std::vector<bool> is_written_;  // by the first of the cells that are one
};

EffectsBuilder::EffectsBuilder(const Graph& graph, const EffectsOptions& options, Effects& result)
    : graph_(graph),
      options_(options),
      result_(result),
      cells_(graph, options.modules, options.inputs_may_alias, options.is_own) {}

void EffectsBuilder::build() {
  result_.effects_.resize(graph_.id_bound());
  cells_.reserve(graph_.size());
  cells_.find_elements();
  result_.written_start_.push_back(0);
  order_.reserve(graph_.size());
  ids_.reserve(graph_.size());
  for (const Node& node : graph_.nodes()) {
    order_.push_back(const_cast<Node*>(&node));
    ids_.push_back(node.id());
    NodeEffects& effects = result_.effects_[node.id()];
    if (node.is_callable()) effects = effects_of(node, options_.modules);
    cells_.classify(node, effects);
    if (effects.impure()) add_writes(node, effects);
  }
  result_.values_ = std::move(cells_.values_);
  result_.lists_ = std::move(cells_.lists_);
  add_state_reads();
  number_sets();
  fill_members();
  fill_writers();
  fill_state_readers();
}

void EffectsBuilder::add_writes(const Node& node, const NodeEffects& effects) {
  Node* writer = const_cast<Node*>(&node);
  gathered_.clear();
  cells_.for_each_written(node, effects, [&](Cell cell) { gathered_.push_back(cell); });
  for (const Cell cell : gathered_) writes_.push_back({cell, writer});
  result_.written_.insert(result_.written_.end(), gathered_.begin(), gathered_.end());
  result_.impure_.push_back(writer);
  result_.written_start_.push_back(static_cast<std::uint32_t>(result_.written_.size()));
}

/// What calls read beside their inputs, as far as somebody writes there.
void EffectsBuilder::add_state_reads() {
  if (writes_.empty()) return;
  is_written_.resize(cells_.size());
  for (const Write& write : writes_) is_written_[cells_.find(write.cell)] = true;
  FlatMap<std::uint32_t> known;  // by module; 1 + the index in `states`
  std::vector<CellList> states;
  const auto note = [&](const Node& node, const CellList& state) {
    if (!state.count) return;
    if (result_.states_.empty()) result_.states_.resize(graph_.id_bound());
    result_.states_[node.id()] = state;
  };
  for (const Node* node : order_) {
    if (node->is(Op::call_module)) {
      std::uint32_t& index = known[node->target().id()];
      if (!index) {
        states.push_back(written_state(*node));
        index = static_cast<std::uint32_t>(states.size());
      }
      note(*node, states[index - 1]);
    } else if (result_.effects_[node->id()].unknown) {
      note(*node, written_state(*node));
    }
  }
}

/// The written ones among the cells of what the call holds.
CellList EffectsBuilder::written_state(const Node& call) {
  gathered_.clear();
  cells_.for_each_state(call, result_.effects_[call.id()], [&](Cell cell) {
    if (is_written_[cells_.find(cell)]) gathered_.push_back(cells_.find(cell));
  });
  return listed();
}

/// What was gathered, each once, as a list; none for nothing.
CellList EffectsBuilder::listed() {
  std::sort(gathered_.begin(), gathered_.end());
  gathered_.erase(std::unique(gathered_.begin(), gathered_.end()), gathered_.end());
  CellList value;
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
      result_.external_.push_back(cells_.is_external(cell));
    } else {
      set_of[cell] = set_of[root];
      if (cells_.is_external(cell)) result_.external_[set_of[cell]] = true;
    }
  }
  for (CellList& value : result_.values_) {
    if (value.count == 1) value.at = set_of[value.at];
  }
  for (CellList& value : result_.states_) {
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
      const CellList& value = result_.values_[ids_[place]];
      if (value.count == 1) {
        visit(value.at, order_[place]);
        continue;
      }
      const auto sets = value.in(result_.lists_);
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
      for (const Effects::Set set : result_.states_[ids_[place]].in(result_.lists_)) visit(set, order_[place]);
    }
  });
}

Effects::Effects(const Graph& graph, const EffectsOptions& options) : graph_(&graph) {
  EffectsBuilder(graph, options, *this).build();
}

}  // namespace fx
