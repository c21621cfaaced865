// What the files of shape formulas share. Private to them (shape_formulas.h is for everyone).
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include <span>
#include <string_view>
#include <vector>

namespace fx::internal {

/// The shapes of an operator's results; none where the formula does not know.
using Formula = std::vector<at::Tensor> (*)(const c10::IValue* arguments);
/// The same for an operator with one result: an undefined tensor where it does not know.
using FormulaOfOne = at::Tensor (*)(const c10::IValue* arguments);

struct FormulaRow {
  std::string_view target;
  std::size_t count;  ///< of arguments
  FormulaOfOne one = nullptr;
  Formula several = nullptr;
};

/// Elements in another order or place: padding, flipping, rolling, choosing, sampling a grid.
std::span<const FormulaRow> moving_formulas();
/// Recurrent networks.
std::span<const FormulaRow> recurrent_formulas();

using Ints = std::vector<std::int64_t>;

/// One number stands for all dimensions.
inline bool per_dimension(const c10::IValue& value, std::size_t count, Ints& out) {
  if (!value.isIntList()) return false;
  out = value.toIntVector();
  if (out.size() == 1) out.resize(count, out[0]);
  return out.size() == count;
}

inline bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_meta() && tensor.is_contiguous();
}

inline bool is_plain_real(const c10::IValue& value) {
  return value.isTensor() && is_plain(value.toTensor()) && value.toTensor().is_floating_point();
}

inline at::Tensor contiguous_like(const at::Tensor& input, const Ints& sizes) {
  return at::empty(sizes, at::TensorOptions(input.scalar_type()).device(at::kMeta));
}

/// Whether an optional argument is a vector of `size` elements of the type of `input`, or not given.
inline bool is_vector_for(const c10::IValue& value, const at::Tensor& input, std::int64_t size) {
  if (value.isNone() || !value.toTensor().defined()) return true;
  const at::Tensor tensor = value.toTensor();
  return tensor.dim() == 1 && tensor.size(0) == size && tensor.scalar_type() == input.scalar_type();
}

}  // namespace fx::internal
