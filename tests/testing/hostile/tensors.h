// Tensors to be hostile with: all types, sizes with 0 and 1 among them, strides of every kind, numbers that hurt.
// Internal to this library and the tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/support/random.h>

namespace fx::hostile {

using internal::Random;

/// What one tensor looks like, but for its numbers.
struct TensorForm {
  std::vector<std::int64_t> sizes;
  at::ScalarType type = at::kFloat;
};

enum class Numbers : std::uint8_t {
  tame,     ///< finite, of ordinary size
  special,  ///< NaN, infinities and both zeros among them
};

/// A tensor of this form: contiguous, transposed, every other element of something larger, or one row repeated.
at::Tensor draw_tensor(Random& random, const TensorForm& form, Numbers numbers);

/// A copy in a storage of its own that lies in it as `tensor` does: strides, offset and overlap are kept.
at::Tensor copy_of(const at::Tensor& tensor);

/// The same tensor with other numbers: each finite floating-point one moved by `step` of itself, or by one rounding
/// of its type where that is more.
at::Tensor nudged(Random& random, const at::Tensor& tensor, double step);
/// The same tensor with ordinary numbers in place of NaNs and infinities.
at::Tensor tamed(const at::Tensor& tensor);

/// Writes `number` to every element.
void fill(const at::Tensor& tensor, double number);

/// The elements in order, as doubles; complex numbers are two.
std::vector<double> elements_of(const at::Tensor& tensor);

/// `Float[2, 3] strides [1, 2] {…}`.
std::string describe(const at::Tensor& tensor);

}  // namespace fx::hostile
