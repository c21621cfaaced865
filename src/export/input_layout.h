// How the inputs of a program that is written lie in memory where their sizes vary. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include <fxgraph/export/tensors.h>

namespace fx::pt2 {

/// The strides of a tensor whose sizes vary: from the smallest on, each is the product of the sizes before it, as it is
/// in the example. A tensor with gaps or overlaps becomes contiguous.
void set_strides(TensorMeta& meta);

/// The same, but where none of its sizes is another than `given`, it lies as it was given: the program may ask how.
void lay_out(TensorMeta& meta, const std::vector<std::int64_t>& given, const std::vector<SymbolicSize>& given_strides);

}  // namespace fx::pt2
