// Common-subexpression elimination: of two calls that must give the same value, the later one goes.
//
// Two calls are the same when they call the same operator, however that is spelt, with the same arguments as it takes
// them (so that defaults, keywords and the order of commutative operands do not matter): the same nodes, and literals
// of the same kind and bits (1 is not 1.0, 0.0 is not -0.0).
//
// Never merged: calls that write, draw random numbers or may raise; reads on two sides of a write to what they read;
// values that are written later; two values that both leave the graph (they would start to share storage).
//
// One pass in order: O(nodes + arguments).
#pragma once

#include <cstddef>
#include <functional>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/graph.h>

namespace fx {

/// Returns how many nodes were removed. Calls that `banned` accepts stay, each for itself.
std::size_t eliminate_common_subexpressions(Graph& graph, const ModuleInfo& modules = {},
                                            const std::function<bool(const Node&)>& banned = {});

}  // namespace fx
