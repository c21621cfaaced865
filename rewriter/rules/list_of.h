// Sizes, strides or dimensions as an argument.
#pragma once

#include <cstdint>
#include <vector>

#include <fxgraph/ir/argument.h>

namespace fx::rules {

/// The list of these numbers.
inline Argument list_of(const std::vector<std::int64_t>& numbers) {
  return Argument::list(std::vector<Argument>(numbers.begin(), numbers.end()));
}

/// The elements of such an argument; a number stands for a list of it.
inline std::vector<Argument> elements_of(const Argument& list) {
  if (!list.is_sequence()) return {list};
  return {list.elements().begin(), list.elements().end()};
}

}  // namespace fx::rules
