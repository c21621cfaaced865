// Tidying a graph after its trace.
#pragma once

#include <unordered_set>

#include <fxgraph/ir/graph.h>

namespace fx::internal {

/// Operators with several results get a getitem for each, of which most programs use one: erases the others, but those
/// of `kept`.
void erase_unused_getitems(Graph& graph, const std::unordered_set<const Node*>& kept = {});

/// Erases get_attr nodes that nothing uses.
void erase_unused_attributes(Graph& graph);

}  // namespace fx::internal
