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

}  // namespace fx::rules
