// Proxy: a torch::Tensor that stands for a node of a graph being traced.
//
// It is an ordinary Tensor handle to a special TensorImpl, so that any C++ code which takes tensors can be traced
// unchanged. Each operator applied to it comes to the tracer (trace/dispatch.h), which makes a node and returns another
// proxy.
//
// A proxy knows its shape, dtype and device when the trace has example inputs; it then has `value`, a tensor on the
// meta device. Without, asking for sizes throws Error(trace) that names the node, the call and the cure. Data never
// exists: `data_ptr` and `item()` always throw.
#pragma once

#include <ATen/core/Tensor.h>

#include <fxgraph/ir/node.h>

namespace fx {

/// True for a tensor that stands for a node (or is a constant made while tracing).
bool is_proxy(const at::Tensor& tensor);

/// The node that `tensor` stands for now; null when it is an ordinary tensor or its trace has ended. After an in-place
/// operator that is the operator's node.
Node* node_of(const at::Tensor& tensor);

}  // namespace fx
