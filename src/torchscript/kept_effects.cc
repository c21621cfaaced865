#include <fxgraph/torchscript/kept_effects.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <vector>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>

namespace fx::internal {

namespace {

using Dropped = std::optional<std::pair<const Node*, std::string>>;

/// True when an overload says that its result may share storage.
bool says_that_it_aliases(const Node& node) {
  const auto says = [](const OperatorSchema* schema) {
    return std::ranges::any_of(schema->returns, [](const SchemaReturn& result) { return !result.alias.empty(); });
  };
  const std::vector<const OperatorSchema*>& several = candidate_overloads(node.op(), node.target());
  if (!several.empty()) return std::ranges::any_of(several, says);
  const Call call = call_of(node);
  return !call || says(&call.schema());  // getitem and the like: they become operators that say so
}

class KeptEffects {
 public:
  explicit KeptEffects(const Graph& graph)
      : graph_(graph), parent_(graph.id_bound()), told_(graph.id_bound()), live_(graph, false) {
    std::iota(parent_.begin(), parent_.end(), 0u);
    std::iota(told_.begin(), told_.end(), 0u);
    for (const Node& node : graph_.nodes()) join(node);
  }

  Dropped find() {
    note_writes();
    for (const auto& [root, writers] : writers_) {
      const auto hidden = hidden_.find(root);
      if (hidden == hidden_.end()) continue;
      // What was written before is forwarded as it is.
      const auto later =
          std::ranges::find_if(writers, [&](const Node* writer) { return is_missed(*writer, *hidden->second); });
      if (later != writers.end()) found(**later, hidden->second);
    }
    mark_live();
    for (const Node& node : graph_.nodes()) {
      if (!is_call(node) || live_[node] || !effects_of(node).random) continue;
      if (!first_ || node.is_before(*first_->first))
        first_ = {&node,
                  "nothing that comes out depends on the random numbers that it draws, so TorchScript drops it, "
                  "and later calls draw others; erase it, or return its result"};
    }
    return first_;
  }

 private:
  static bool is_call(const Node& node) { return node.is(Op::call_function) || node.is(Op::call_method); }

  static std::uint32_t root_in(std::vector<std::uint32_t>& parent, std::uint32_t id) {
    while (parent[id] != id) id = parent[id] = parent[parent[id]];
    return id;
  }
  std::uint32_t root(std::uint32_t id) { return root_in(parent_, id); }
  std::uint32_t told_root(const Node& node) { return root_in(told_, node.id()); }

  /// Shares storage with its inputs, and TorchScript takes the result for new: unsafe_chunk, dropout that does nothing.
  static bool hides(const Node& node, const NodeEffects& effects) {
    return is_call(node) && effects.may_alias && !effects.unknown && !effects.writes && !says_that_it_aliases(node);
  }

  /// Whether somebody sees the write through a tensor that TorchScript takes for another than the written one. Who
  /// reads what was written, as the cells of recurrent layers do, loses nothing.
  bool is_missed(const Node& writer, const Node& hidden) {
    if (!hidden.is_before(writer)) return false;
    bool missed = false;
    const auto look = [&](const Node& written) {
      for (const auto& [reader, read] : reads_[root(written.id())]) {
        const bool outside = !reader;
        missed |= told_root(*read) != told_root(written) && (outside || hidden.is_before(*reader));
      }
    };
    for_each_written(writer, [&](const Argument& written) { for_each_node(written, look); });
    return missed;
  }

  void join(const Node& node) {
    const NodeEffects effects = effects_of(node);
    if (node.is(Op::get_attr)) {
      const auto [at, is_new] = attributes_.emplace(node.target().id(), node.id());
      if (!is_new) parent_[root(node.id())] = root(at->second);
      if (!is_new) told_[told_root(node)] = root_in(told_, at->second);
    }
    if (!effects.may_alias && !effects.unknown) return;
    const bool hidden = hides(node, effects);
    for_each_aliased_input(node, [&](Node& input) {
      parent_[root(input.id())] = root(node.id());
      if (!hidden) told_[told_root(input)] = told_root(node);
    });
  }

  void note_writes() {
    for (const Node& node : graph_.nodes()) {
      const NodeEffects effects = effects_of(node);
      if (hides(node, effects)) hidden_.emplace(root(node.id()), &node);
      if (node.is(Op::placeholder) || node.is(Op::get_attr)) reads_[root(node.id())].emplace_back(nullptr, &node);
      node.for_each_input([&](const Node& input) { reads_[root(input.id())].emplace_back(&node, &input); });
      if (!effects.writes) continue;
      for_each_written(node, [&](const Argument& written) {
        for_each_node(written, [&](const Node& value) { writers_[root(value.id())].push_back(&node); });
      });
    }
  }

  void found(const Node& writer, const Node* alias) {
    if (first_ && !writer.is_before(*first_->first)) return;
    first_ = {&writer, "it writes to what %" + alias->name() + ", an " + alias->target().str() +
                           ", shares; TorchScript takes that for a tensor of its own, and may drop the write or what "
                           "reads it; put aten::alias in its place, or a clone"};
  }

  /// What reaches the output, the caller's tensors, or the outside.
  void mark_live() {
    std::vector<const Node*> open;
    const auto add = [&](const Node& node) {
      if (live_[node]) return;
      live_[node] = true;
      open.push_back(&node);
    };
    for (const Node& node : graph_.nodes()) {
      const NodeEffects effects = effects_of(node);
      const bool outside = effects.side_effect || effects.unknown || node.is(Op::call_module);
      if (node.is(Op::output) || node.is(Op::placeholder) || node.is(Op::get_attr) || outside) add(node);
    }
    while (!open.empty()) {
      const Node& node = *open.back();
      open.pop_back();
      // What is written before somebody reads; of tensors that others hold, all.
      const auto add_writers = [&](const Node& value, const Node* reader) {
        const auto at = writers_.find(root(value.id()));
        if (at == writers_.end()) return;
        std::size_t& next = added_[at->first];
        while (next < at->second.size() && (!reader || at->second[next]->is_before(*reader))) add(*at->second[next++]);
      };
      if (node.is(Op::placeholder) || node.is(Op::get_attr)) add_writers(node, nullptr);
      node.for_each_input([&](const Node& input) {
        add(input);
        add_writers(input, &node);
      });
    }
  }

  const Graph& graph_;
  std::vector<std::uint32_t> parent_;  // of alias classes, by id
  std::vector<std::uint32_t> told_;    // the same, of what TorchScript knows of them
  /// Of a class: who reads which of its values; null for the caller and later calls.
  std::unordered_map<std::uint32_t, std::vector<std::pair<const Node*, const Node*>>> reads_;
  std::unordered_map<std::uint32_t, std::uint32_t> attributes_;
  std::unordered_map<std::uint32_t, const Node*> hidden_;                // a class, and what TorchScript takes for new
  std::unordered_map<std::uint32_t, std::vector<const Node*>> writers_;  // of a class, in order
  std::unordered_map<std::uint32_t, std::size_t> added_;                 // how many of these are live
  NodeMap<bool> live_;
  Dropped first_;
};

/// TorchScript keeps equal constants once, and takes these for equal.
Dropped find_two_zeros(const Graph& graph) {
  const Node* negative = nullptr;
  bool positive = false;
  const auto look = [&](const Node& node, const Argument& argument, const auto& again) -> void {
    if (argument.is_float() && argument.as_float() == 0) {
      if (!std::signbit(argument.as_float())) {
        positive = true;
      } else if (!negative) {
        negative = &node;
      }
    }
    for (const Argument& element : argument.elements()) again(node, element, again);
  };
  for (const Node& node : graph.nodes()) {
    for (const Argument& argument : node.args()) look(node, argument, look);
    for (const auto& [name, argument] : node.kwargs()) look(node, argument, look);
  }
  if (!negative || !positive) return {};
  return {{negative, "TorchScript keeps 0.0 and -0.0 as one constant, and both are in the program"}};
}

}  // namespace

std::optional<std::pair<const Node*, std::string>> find_dropped_effect(const Graph& graph) {
  if (Dropped zeros = find_two_zeros(graph)) return zeros;
  return KeptEffects(graph).find();
}

}  // namespace fx::internal
