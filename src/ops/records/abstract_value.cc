#include <fxgraph/ops/records/abstract_value.h>

namespace fx {

SizeExpr TensorType::numel() const {
  SizeExpr product = 1;
  for (const SizeExpr& size : sizes) product = product * size;
  return product;
}

bool TensorType::is_contiguous() const { return strides && *strides == contiguous_strides(sizes); }

std::string TensorType::str() const {
  std::string text(to_string(dtype));
  text += "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + sizes[i].str();
  return text + "]";
}

// A dimension without elements counts as one, as LibTorch has it.
std::vector<SizeExpr> contiguous_strides(const std::vector<SizeExpr>& sizes) {
  std::vector<SizeExpr> strides(sizes.size());
  SizeExpr stride = 1;
  for (std::size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride = stride * (sizes[dim].is_integer() ? max(sizes[dim], 1) : sizes[dim]);
  }
  return strides;
}

}  // namespace fx
