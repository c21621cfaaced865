// Tensors that stand in for others while shapes are worked out: on the meta device where LibTorch has kernels for
// shapes alone, and on the CPU where it has not. The tracer and ShapeProp share them, so that they agree.
#pragma once

#include <ATen/core/Tensor.h>

namespace fx::internal {

/// A meta tensor like `tensor`, a number where that is one; undefined when there is none (undefined, quantized, sparse
/// and other layouts).
at::Tensor to_meta(const at::Tensor& tensor);

/// The same storage with a shape of its own: who changes that in place (`unsqueeze_`) does not change the other's. An
/// undefined tensor stays what it is.
at::Tensor own_shape(const at::Tensor& tensor);

/// Whether a defined tensor is a number of the program (LibTorch's "wrapped number"), which types of results do not
/// follow as they follow those of tensors.
bool is_number(const at::Tensor& tensor);

/// A tensor on the CPU with the shape and strides of `meta`, filled with `fill`. Square matrices get something else on
/// the diagonal, so that those who factorise or invert find something regular. An undefined tensor stays what it is.
at::Tensor fake_input(const at::Tensor& meta, int fill = 0);

}  // namespace fx::internal
