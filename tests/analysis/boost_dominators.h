// Dominators and PostDominators against Boost's Lengauer-Tarjan, on one graph.
#pragma once

#include <string>

#include <fxgraph/ir/graph.h>

namespace fx::testing {

/// Compares immediate and depth of all nodes, dominates and common of all pairs. Returns the first disagreement in
/// words, empty when there is none. Boost's algorithm recurses: for graphs of some hundred nodes.
std::string disagreement_with_boost(const Graph& graph);

}  // namespace fx::testing
