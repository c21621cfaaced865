// Python's power of two ints.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>

namespace fx::internal {

/// `a ** b`: an int, for a negative `b` a float. Throws Error(execution) for what 64 bits do not hold, and for zero to
/// a negative power.
c10::IValue int_pow(std::int64_t a, std::int64_t b);

}  // namespace fx::internal
