// TorchScript source from a graph: a method that torch::jit::Module::define and Python's torch.jit compile.
//
//   def forward(self, x: Tensor) -> Tensor:
//       relu = torch.relu(torch.linear(…))
//
// Operators are called by their ATen names, dtypes and other options are the numbers that TorchScript files hold.
// Cost: linear in the graph. Thread-safety: as the const functions of Graph.
#pragma once

#include <string>

#include <fxgraph/ir/graph.h>

namespace fx {

/// Returns the method `forward` of the graph. Inputs without annotation are tensors, or what their default is. Throws
/// Error(unsupported) naming the node for what TorchScript cannot say.
std::string torchscript_code(const Graph& graph);

}  // namespace fx
