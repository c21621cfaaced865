// Batches cut into micro-batches, and results put together again: tensors by their first dimension, in lists and tuples
// too. Pipelines fill their ranks by it; GraphModule::set_micro_batches runs one part after the other.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace fx {

/// How a program is run in micro-batches.
struct MicroBatches {
  using Sizes = std::vector<std::int64_t>;  ///< of a tensor; -1: any
  std::int64_t size = 0;                    ///< samples of one, at most; 0: batches are run whole
  /// Of each input, which is cut in dimension 0; -1: any, as the first is always. Without a size: it goes to all whole.
  std::vector<Sizes> inputs{};

  /// The batch that these values are, where it is to be cut: nothing when it is not larger than one, when a value has
  /// other sizes or another number of samples than the others, or is no tensor.
  std::optional<std::int64_t> to_cut(const std::vector<c10::IValue>& values) const;
  /// The i-th of `parts` parts of these values.
  std::vector<c10::IValue> part(const std::vector<c10::IValue>& values, std::int64_t batch, std::size_t i,
                                std::size_t parts) const;
  /// How many parts that batch is cut into, of even sizes.
  std::size_t num_parts(std::int64_t batch) const { return static_cast<std::size_t>((batch + size - 1) / size); }
};

/// The first dimension of the first tensor that has one; -1 without any.
/// @{
std::int64_t batch_of(const c10::IValue& value);
std::int64_t batch_of(const std::vector<c10::IValue>& values);
/// @}

/// Throws Error(invalid_argument) when a batch of that size cannot be cut into so many parts.
void check_batch(std::int64_t batch, std::size_t parts);

/// The i-th of `parts` parts of a batch: its first sample and its size.
std::pair<std::int64_t, std::int64_t> part_of(std::int64_t batch, std::size_t i, std::size_t parts);

/// The i-th part of a value; tensors with another first dimension go whole.
c10::IValue cut(const c10::IValue& value, std::int64_t batch, std::size_t i, std::size_t parts);

/// The results of the parts of a batch as one: tensors with so many rows a sample, one after the other. Throws
/// Error(invalid_argument) when they are no such tensors.
c10::IValue join(const std::vector<c10::IValue>& parts, std::int64_t batch);

/// True when there is a tensor in a list, tuple or dict.
bool holds_tensors(const c10::IValue& value);

}  // namespace fx
