// Tensors of a program that were computed, with gradients, before it runs: a member `w2 = w * 2` beside the parameter
// w.
//
// The program in memory has their history, and its gradients reach w. What is saved has no history: it is refused.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include <fxgraph/module/graph_module.h>

namespace fx::internal {

/// Whether gradients go through the tensor to others.
inline bool has_history(const at::Tensor& tensor) { return tensor.requires_grad() && !tensor.is_leaf(); }

/// Throws Error(unsupported) for the tensor at this path.
[[noreturn]] void refuse_history(const std::string& path);
/// The same for those that `graph`, which runs over `module`, reads and does not write: what a run has left there is a
/// value like any other. Complexity: linear where there is a history, else in the number of attributes.
void refuse_history(const GraphModule& module, const Graph& graph);

}  // namespace fx::internal
