// Effects over a whole graph: which values may share storage, which nodes write it, and what lies between two nodes.
//
//   fx::Effects effects(graph);
//   effects.may_alias(a, b);             // could a write to one change the other?
//   effects.write_between(value, a, b);  // is `value` written, through any alias, between a and b?
//
// Alias sets: values that may share storage are in one set. Views, in-place results and getitem join the set of what
// they look at; every placeholder has a set of its own, and so have the elements of a tuple that an operator makes. All
// get_attr of one path share a set. A value may be in several sets: a tuple is in those of its elements, a result that
// may alias either of two arguments in both. When these grow beyond kMaxSets they are united. What a single call does
// comes from its schema (effects/effects_of.h); an operator without one is taken to read, write and return anything it
// is given.
//
// Not known here, so not in the answer: two inputs that the caller passes the same tensor for (EffectsOptions), storage
// shared between attributes of different paths (likewise), and whether an operator that may return a view or a copy
// (reshape, contiguous) did copy: it counts as a view.
//
// Complexity: O((nodes + uses) α) to make; questions about a pair or a window are O(log writes). The result is a
// snapshot of the nodes that are there, valid until the graph is edited: of later ones, or of those of another graph,
// nothing may be asked. The graph must outlive it. Thread-safety: const functions may run on several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/effects/alias_cells.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/graph.h>

namespace fx {

/// What is known of a program beside its graph.
struct EffectsOptions {
  /// What call_module does, and which attributes share storage.
  ModuleInfo modules{};
  bool inputs_may_alias = false;  ///< true: a caller may pass one tensor for two placeholders
  /// True of calls whose results are taken for storages of their own though they share one: for those who ask what
  /// somebody who knows less takes for granted.
  std::function<bool(const Node& call)> is_own{};
};

/// The effects of every node, alias sets and the order that writes impose; see the top of this file.
class Effects {
 public:
  /// An alias set, numbered from 0 by first appearance in the graph.
  using Set = internal::Cell;
  static constexpr std::size_t kMaxSets =
      internal::AliasCells::kMaxCells;  ///< sets of one value; when there would be more they are united

  /// Analyses `graph` as it is now. `options` is read during construction only.
  explicit Effects(const Graph& graph, const EffectsOptions& options = {});
  /// The same with what is known of the program's modules; `options` may say more.
  explicit Effects(const Program auto& program, const EffectsOptions& options = {})
      : Effects(program.graph(), {.modules = options.modules.or_else(module_info(program)),
                                  .inputs_may_alias = options.inputs_may_alias,
                                  .is_own = options.is_own}) {}

  // ── What a node does ─────────────────────────────────────────────────────────────────────────────────────────────
  /// What this call does, by its schema or module; nothing for placeholders, get_attr and output.
  const NodeEffects& of(const Node& node) const { return effects_[node.id()]; }
  /// True when `node` may write to a value of the graph or to a module's state.
  bool writes(const Node& node) const { return !written_sets(node).empty() || of(node).writes; }
  /// True when `node` must stay, and in its place: it writes, draws random numbers, raises, or nobody knows.
  bool impure(const Node& node) const { return of(node).impure(); }
  /// The sets that `node` may write to, module state included.
  std::span<const Set> written_sets(const Node& node) const;
  /// Of the sets that somebody writes to, those of the tensors that a called module holds, or the graphs that the call
  /// runs: what it reads beside its inputs.
  std::span<const Set> state_sets(const Node& call) const {
    return states_.empty() ? std::span<const Set>() : states_[call.id()].in(lists_);
  }

  // ── Aliases ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /// True when a write to one may change the other; true of a node and itself when it has a storage.
  bool may_alias(const Node& a, const Node& b) const;
  /// The sets that the value of `node` is in; none for the output.
  std::span<const Set> sets(const Node& node) const { return values_[node.id()].in(lists_); }
  /// How many alias sets there are; Set counts from 0.
  std::size_t num_sets() const { return external_.size(); }
  /// The values in a set, in graph order.
  std::span<Node* const> members(Set set) const { return members_.of(set); }
  /// True for the storage of inputs, attributes and modules: what is written there can be seen outside.
  bool is_external(Set set) const { return external_[set]; }

  // ── Writes ───────────────────────────────────────────────────────────────────────────────────────────────────────
  /// The nodes that may write to a set, in graph order.
  std::span<Node* const> writers(Set set) const { return writers_.of(set); }
  /// How often the storage of `value` may have been written when `at` starts: its version. Equal versions, equal
  /// contents.
  std::size_t version(const Node& value, const Node& at) const;
  /// The last node before `at` that may have written to the storage of `value`, or null: which write a read at `at`
  /// sees.
  Node* last_write_before(const Node& value, const Node& at) const;
  /// The first node strictly between `a` and `b` that may write to the storage of `value`, or null. `a` is before `b`.
  Node* write_between(const Node& value, const Node& a, const Node& b) const;
  /// The calls that have a set among their state_sets(), in graph order.
  std::span<Node* const> state_readers(Set set) const { return state_readers_.of(set); }
  /// The nodes after `write` that take or hold a value that it may have changed: the reads that may see it.
  /// They may see a later write instead. In graph order, each once. O(uses of the values concerned).
  std::vector<Node*> readers(const Node& write) const;

  // ── Order ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /// The impure nodes strictly between `a` and `b`, in graph order. `a` is before `b`.
  std::span<Node* const> between(const Node& a, const Node& b) const;
  /// True when two neighbours may change places: neither uses the other, neither writes what the other reads or writes,
  /// and not both draw random numbers or have side effects.
  bool may_swap(const Node& a, const Node& b) const;
  /// Edges that keep every write, read, random draw and side effect in place while nodes move: any topological order of
  /// uses and these does the same. O(nodes + uses) edges. Inputs stay first and the output last by themselves.
  OrderEdges order_edges() const;

  /// The graph that was given, which must still be there and unchanged.
  const Graph& graph() const { return *graph_; }

 private:
  friend class EffectsBuilder;
  /// Nodes by set.
  struct Table {
    std::vector<std::uint32_t> starts;  // one more than the sets
    std::vector<Node*> nodes;
    std::span<Node* const> of(Set set) const { return {nodes.data() + starts[set], nodes.data() + starts[set + 1]}; }
  };
  bool touches(const Node& writer, const Node& other) const;

  const Graph* graph_;
  std::vector<NodeEffects> effects_;        // by id
  std::vector<internal::CellList> values_;  // by id
  std::vector<internal::CellList> states_;  // by id; empty when nobody writes to what a call holds
  std::vector<Set> lists_;
  std::vector<bool> external_;  // by set
  Table members_, writers_, state_readers_;
  std::vector<Node*> impure_;                 // in graph order
  std::vector<std::uint32_t> written_start_;  // by position in impure_, one more
  std::vector<Set> written_;
};

namespace internal {

/// Options with effects, as long as `made` lives: those that they have already, or these.
template <typename Options>
Options with_effects(Options options, const Effects& made) {
  if (!options.effects) options.effects = &made;
  return options;
}

}  // namespace internal
}  // namespace fx
