// Lists of sizes, strides or dimensions as arguments, and back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <fxgraph/ir/argument.h>

namespace fx {

/// The list of these numbers.
inline Argument list_of(const std::vector<std::int64_t>& numbers) {
  return Argument::list(std::vector<Argument>(numbers.begin(), numbers.end()));
}

/// The elements of such an argument; a number stands for a list of it.
inline std::vector<Argument> elements_of(const Argument& list) {
  if (!list.is_sequence()) return {list};
  return {list.elements().begin(), list.elements().end()};
}

/// The whole numbers of a list. Where a `size` is given there are as many, for which a single number may stand.
inline std::optional<std::vector<std::int64_t>> integers_of(const Argument& list, std::size_t size = 0) {
  if (!list.is_sequence() && size == 0) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Argument& each : elements_of(list)) {
    if (!each.is_int()) return std::nullopt;
    numbers.push_back(each.as_int());
  }
  if (size > 0 && numbers.size() == 1) numbers.resize(size, numbers[0]);
  return size == 0 || numbers.size() == size ? std::optional(numbers) : std::nullopt;
}

}  // namespace fx
