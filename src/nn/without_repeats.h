// Tensors that are expanded: elements that share memory along a dimension of stride 0.
#pragma once

#include <ATen/core/Tensor.h>

namespace fx {

/// A view with each element that is repeated along a dimension of `as` once: what can be written, and need be copied.
inline at::Tensor without_repeats(at::Tensor tensor, const at::Tensor& as) {
  if (as.layout() != at::kStrided) return tensor;
  for (std::int64_t dim = 0; dim < as.dim(); ++dim) {
    if (as.stride(dim) == 0 && as.size(dim) > 1) tensor = tensor.narrow(dim, 0, 1);
  }
  return tensor;
}
inline at::Tensor without_repeats(const at::Tensor& tensor) { return without_repeats(tensor, tensor); }

}  // namespace fx
