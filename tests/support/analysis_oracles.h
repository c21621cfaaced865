// Analyses by their definitions, slow and obviously right, and the comparison of ours with them on one graph.
//
// Each disagreement_on_… returns the first one in words, empty when there is none. They are quadratic in the nodes and
// more: for graphs of some hundred.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/ir/graph.h>

namespace fx::testing {

/// Dominators and PostDominators against Boost's Lengauer-Tarjan: immediate, depth, and for all pairs dominates,
/// common.
std::string disagreement_on_dominators(const Graph& graph);

/// The values that are live while each node runs, as sets: from a value's own node to its last user's.
std::vector<std::vector<Node*>> live_sets(const Graph& graph);
/// Liveness against live_sets: the live values at every node, the peak.
std::string disagreement_on_liveness(const Graph& graph);

/// Reachability by the definition: the transitive closure as a matrix, by id.
std::vector<std::vector<bool>> closure(const Graph& graph, const OrderEdges* order = nullptr);
/// Reachability against the closure, for all pairs.
std::string disagreement_on_reachability(const Graph& graph, const OrderEdges* order = nullptr);

/// All nodes, in graph order.
std::vector<Node*> all_nodes(const Graph& graph);

}  // namespace fx::testing
