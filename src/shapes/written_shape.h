// The shape of what an operator writes to.
#pragma once

#include <ATen/core/Tensor.h>

namespace fx::internal {

/// Gives `written`, a meta tensor, the sizes of `result`, as LibTorch does to the tensors that out= operators write to.
inline void take_shape(const at::Tensor& written, const at::Tensor& result) {
  if (written.defined() && result.defined() && written.is_meta() && written.sizes() != result.sizes())
    written.resize_(result.sizes());
}

}  // namespace fx::internal
