// Lists of sizes, as TorchScript computes with them: `x.size()`, slices and sums of such. torch.export has words for
// their elements alone. Thread-safety: none.
#pragma once

#include <fxgraph/export/value_shapes.h>
#include <fxgraph/ir/graph.h>

namespace fx::pt2 {

/// Puts the elements in place of such lists wherever `graph` reads them; `values` says how many there are, and learns
/// what the new nodes are.
void take_lists_apart(Graph& graph, ValueShapes& values);

}  // namespace fx::pt2
