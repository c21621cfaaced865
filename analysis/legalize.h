// Repairs the order of a graph whose nodes stand before what they use, as edits that insert and move can leave it.
#pragma once

#include <cstddef>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/graph.h>

namespace fx {

/// Puts the nodes into an order in which everything is made before it is used, placeholders first and the output last.
/// Nodes that need not move keep their order, and so do all that write, draw random numbers or have side effects. FX's
/// legalize_graph, and stable_topological_sort. Returns how many nodes have another place; a legal graph stays as it
/// is.
///
/// Throws, leaving the graph as it was: Error(invalid_argument) naming the nodes of a cycle, Error(unsupported) naming
/// a node that would have to pass one that writes what it reads. O((nodes + uses) log nodes).
std::size_t legalize_graph(Graph& graph, const EffectsOptions& options = {});

}  // namespace fx
