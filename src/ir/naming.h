// Naming nodes after their targets.
//
// Thread-safety: name_after as Symbol; the rest as edits of the graph.
#pragma once

#include <functional>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/namespace.h>

namespace fx {

/// Returns what a node with this target is called unless it is given a name and the name is free. O(1) after the first
/// question.
NodeName name_after(Symbol target);

/// Names all nodes after their targets again, in order, as if no others had ever been here; those for which `keeps` is
/// true keep their names. For passes that make a graph and erase much of it again before anyone has seen it: nodes
/// erased before must not be restored after. O(nodes).
void name_in_order(Graph& graph, const std::function<bool(const Node&)>& keeps);

}  // namespace fx
