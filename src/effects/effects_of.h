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

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ops/node_effects.h>
#include <fxgraph/ops/schema.h>

namespace fx {

class Call;

/// Placeholders, get_attr and output have no effects of their own.
NodeEffects effects_of(const Node& node, const ModuleInfo& modules = {});

/// What a call of an operator does, by its schema and its literals.
NodeEffects effects_of(const Call& call);

/// What every node of this opcode and target does, whatever its arguments; nothing where the node decides.
std::optional<NodeEffects> effects_of_each(Op op, Symbol target, const ModuleInfo& modules = {});

/// Calls `visit(const Argument&)` for every argument of the call that it may write to; of an unknown function or a
/// module that writes, for all that hold nodes. The argument lives for the visit only.
void for_each_written(const Node& node, const std::function<void(const Argument&)>& visit,
                      const ModuleInfo& modules = {});

/// Calls `visit(Node&)` for every input whose storage the result of `node` may share: views, in-place results, getitem.
void for_each_aliased_input(const Node& node, const std::function<void(Node&)>& visit, const ModuleInfo& modules = {});

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
std::size_t eliminate_dead_code(Graph& graph, const ModuleInfo& modules = {});

}  // namespace fx
