// Whose memory a tensor has.
#pragma once

#include <ATen/core/Tensor.h>

namespace fx::internal {

/// True when the tensor's memory was not allocated by LibTorch, as with torch::from_blob: whoever lent it may write or
/// free it when the program that is being traced has ended.
bool is_on_loan(const at::Tensor& tensor);
/// A copy with memory of its own, and the same gradient flag. Not traced.
at::Tensor own_copy(const at::Tensor& tensor);
/// Whether the tensors have the same type, shape and bits; false where that cannot be told.
bool same_data(const at::Tensor& a, const at::Tensor& b);
/// The dimensions, the outermost in memory first.
std::vector<std::int64_t> order_in_memory(const at::Tensor& tensor);
/// A tensor of these sizes and options to stand for `example`, without contents; large ones have no memory.
at::Tensor without_contents(const at::Tensor& example, at::IntArrayRef sizes, at::IntArrayRef strides,
                            const at::TensorOptions& options);

}  // namespace fx::internal
