// The one invariant of a graph without which walking it in order is meaningless: definitions come before uses.
#pragma once

#include <fxgraph/ir/graph.h>

namespace fx {

/// Throws Error(lint) naming the first node that uses a value defined after it (or its own), as Graph::lint would say
/// it. For functions that take each node's inputs as there already. O(nodes + uses), without allocating.
void require_definitions_before_uses(const Graph& graph);

}  // namespace fx
