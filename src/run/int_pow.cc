#include <fxgraph/run/int_pow.h>

#include <cmath>

#include <fxgraph/run/failure.h>

namespace fx::internal {

c10::IValue int_pow(std::int64_t a, std::int64_t b) {
  if (b < 0) {
    if (a == 0) fail("0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(a), static_cast<double>(b));
  }
  std::int64_t result = 1;
  for (bool overflows = false; b != 0; b >>= 1) {
    if ((b & 1) != 0 && (overflows || __builtin_mul_overflow(result, a, &result)))
      fail("the power of two ints is larger than 64 bits hold");
    overflows = overflows || __builtin_mul_overflow(a, a, &a);
  }
  return result;
}

}  // namespace fx::internal
