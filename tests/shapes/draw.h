// What calls of operators are drawn from.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <random>
#include <vector>

namespace fx::testing {

using Ints = std::vector<std::int64_t>;

/// Numbers and tensors by chance: the same for a seed.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t any(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  bool chance(int percent) { return any(1, 100) <= percent; }
  Ints ints(std::size_t count, std::int64_t from, std::int64_t to) {
    if (chance(5)) count = 1;
    Ints result;
    while (result.size() < count) result.push_back(any(from, to));
    return result;
  }
  /// Batches are empty at times; nearly all are contiguous.
  at::Tensor tensor(Ints sizes) {
    if (chance(4)) sizes[0] = 0;
    const at::ScalarType type = chance(4) ? at::kLong : at::kFloat;
    at::Tensor made = at::zeros(sizes, type);
    if (chance(5) && made.dim() > 1) made = made.transpose(0, 1).contiguous().transpose(0, 1);
    return made;
  }
  at::Tensor image(std::size_t count, std::int64_t channels) {
    Ints sizes = {any(1, 3), channels};
    for (std::size_t i = 0; i < count; ++i) sizes.push_back(any(1, 9));
    if (chance(10)) sizes.erase(sizes.begin());
    return tensor(sizes);
  }
  c10::IValue maybe(const at::Tensor& tensor) { return chance(25) ? c10::IValue() : c10::IValue(tensor); }

 private:
  std::mt19937 random_;
};

}  // namespace fx::testing
