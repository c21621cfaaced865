// What TorchScript and its traces compute with tensors and lists, and torch.export with numbers. Thread-safety: none.
#pragma once

#include <fxgraph/export/value_shapes.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

/// Numbers that torch.jit.trace keeps in tensors: `x.size(0) * 2` is `prim::NumToTensor`, `aten::mul.Scalar` and
/// `aten::Int.Tensor`. What is read out of such a tensor becomes arithmetic of numbers, by one table of operators.
/// Where the tensor is used as one, its calls stay and `aten::scalar_tensor` makes it, of the same element type: so
/// promotion is what it was. `graph` runs over `module`'s attributes. Throws Error(unsupported), naming the call, for a
/// number that is made of sizes by an operator that has no words: one that rounds as 32-bit floats do, or writes in
/// place where that is seen elsewhere.
void compute_with_numbers(Graph& graph, const GraphModule& module);

/// Lists of sizes: `x.size()`, slices and sums of such; torch.export has words for their elements alone. Puts the
/// elements in place of such lists wherever `graph` reads them; `values` says how many there are, and learns what the
/// new nodes are.
void take_lists_apart(Graph& graph, ValueShapes& values);

}  // namespace fx::pt2
