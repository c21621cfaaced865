// Effects of single nodes, from operator schemas: what a call writes, draws, raises, and which results alias which
// arguments.
//
// This is the one source of truth for purity: dead code, common subexpressions, the analyses' alias sets and the
// rewriter's legality checks all ask here. What a node means for the whole graph (may this write be seen?) is
// analysis/effects.h.
//
// Operators answer by their schemas and the literals of the call (`dropout` draws nothing when `train` is False).
// Python functions and tensor methods answer by the operators that they call. What nobody knows is `unknown`:
// register_schema (ops/schema.h) makes it known.
//
// Complexity: O(1) after the first question for a target; for the few targets whose effects depend on the call
// (`torch.nn.functional.relu(inplace=…)`) the cost of binding the call. Thread-safety: may be called from any thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ops/node_effects.h>
#include <fxgraph/ops/schema.h>

namespace fx {

class Call;

/// What is known of a program's modules and tensors beside its graph. All of it may be left out.
struct ModuleEffects {
  /// Says what calling the module at `call.target()` does; without it nobody has described it (ops/node_effects.h).
  std::function<NodeEffects(const Node& call)> call{};
  /// One path for all attributes that share storage (tied weights); without it each path has its own.
  std::function<Symbol(Symbol path)> storage{};
  /// Calls `visit` with the storage (as above) of each tensor that the module at a path holds: what a call of it reads,
  /// and what it writes when it writes its state. Without it: the attributes below that path.
  std::function<void(Symbol module, const std::function<void(Symbol storage)>& visit)> state{};

  ModuleEffects() = default;
  /// Lets a function that says what calls of modules do stand for all of it.
  template <std::invocable<const Node&> F>
  requires(!std::same_as<std::remove_cvref_t<F>, ModuleEffects>) ModuleEffects(F effects) : call(std::move(effects)) {}
  /// True when there is a function for calls.
  explicit operator bool() const { return static_cast<bool>(call); }
  /// What calling the module does; `call` must be there.
  NodeEffects operator()(const Node& node) const { return call(node); }
  /// The name of the storage behind `path`: itself unless `storage` says otherwise.
  Symbol storage_of(Symbol path) const { return storage ? storage(path) : path; }
};

/// Placeholders, get_attr and output have no effects of their own.
NodeEffects effects_of(const Node& node, const ModuleEffects& modules = {});

/// What a call of an operator does, by its schema and its literals.
NodeEffects effects_of(const Call& call);

/// What every node of this opcode and target does, whatever its arguments; nothing where the node decides.
std::optional<NodeEffects> effects_of_each(Op op, Symbol target, const ModuleEffects& modules = {});

/// Calls `visit(const Argument&)` for every argument of the call that it may write to; of an unknown function or a
/// module that writes, for all that hold nodes. The argument lives for the visit only.
void for_each_written(const Node& node, const std::function<void(const Argument&)>& visit,
                      const ModuleEffects& modules = {});

/// Calls `visit(Node&)` for every input whose storage the result of `node` may share: views, in-place results, getitem.
void for_each_aliased_input(const Node& node, const std::function<void(Node&)>& visit,
                            const ModuleEffects& modules = {});

/// Takes a call of an operator without a schema at its author's word, from now on and for all who ask: the result is
/// its own, and it writes nothing. So are calls that a replacement makes, and those of a namespace (`mylib::`) that is
/// allowed by name. Nothing happens to other calls.
/// @{
void trust(Node& call);
void trust(Graph& graph, std::string_view name_space);
/// @}

/// Says whether the call takes graphs and runs them, as `higher_order::cond` does: they hold tensors, and a tensor may
/// choose among them.
inline bool runs_graphs(const Node& call) { return call.target().view().starts_with("higher_order::"); }

/// Removes dead nodes: unused, and pure by their schemas. Returns how many. One backward pass.
std::size_t eliminate_dead_code(Graph& graph, const ModuleEffects& modules = {});

}  // namespace fx
