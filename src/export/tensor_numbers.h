// Numbers that torch.jit.trace keeps in tensors: `x.size(0) * 2` is `prim::NumToTensor`, `aten::mul.Scalar` and
// `aten::Int.Tensor`. torch.export computes with the numbers themselves.
//
// What is read out of such a tensor becomes arithmetic of numbers, by one table of operators. Where the tensor is used
// as one, its calls stay and `aten::scalar_tensor` makes it, of the same element type: so promotion is what it was.
// Thread-safety: none.
#pragma once

#include <fxgraph/ir/graph.h>
#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

/// Rewrites `graph`, which runs over `module`'s attributes. Throws Error(unsupported), naming the call, for a number
/// that is made of sizes by an operator that has no words: one that rounds as 32-bit floats do, or writes in place
/// where that is seen elsewhere.
void compute_with_numbers(Graph& graph, const GraphModule& module);

}  // namespace fx::pt2
