// Batches cut into micro-batches, and results put together again: tensors by their first dimension, in lists and tuples
// too. Internal to rewriter/partition/pipeline*.cc and to `fxgraph pipeline`.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fx {

/// The first dimension of the first tensor that has one; -1 without any.
std::int64_t batch_of(const c10::IValue& value);
std::int64_t batch_of(const std::vector<c10::IValue>& values);

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
