// Division of whole numbers as Python has it, rounded down.
#pragma once

#include <cstdint>

namespace fx::internal {

/// `b` is other than 0, and the quotient fits.
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

}  // namespace fx::internal
