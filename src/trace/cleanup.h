// Tidying a graph after its trace.
#pragma once

#include <unordered_set>

#include <fxgraph/ir/graph.h>

namespace fx::internal {

class Session;

/// Operators with several results get a getitem for each, of which most programs use one: erases the others, but those
/// of `kept`.
void erase_unused_getitems(Graph& graph, const std::unordered_set<const Node*>& kept = {});

/// Makes those literals of the program anew in each call, by a clone, that it writes, through views too, or returns:
/// who calls the graph may write them.
void make_literals_anew(Graph& graph, Session& session);

/// Erases get_attr nodes that nothing uses.
void erase_unused_attributes(Graph& graph);

}  // namespace fx::internal
