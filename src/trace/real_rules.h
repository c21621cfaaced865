// Rules that make a whole number of a real multiple of a size: `int(h * 0.7)`, `lround(n / 50.)`.
#pragma once

#include <cstdint>
#include <vector>

namespace fx::internal {

struct RealRule {
  enum class Rounding : std::uint8_t { down, up, nearest, to_even };

  enum class In : std::uint8_t { as_double, as_float, to_float };  ///< the last: a double that is put into a float

  double factor;
  bool divides;
  In in;
  Rounding rounding;
  std::int64_t shift = 0;  ///< added in the end

  std::int64_t at(std::int64_t size) const { return rounded(size) + shift; }
  /// Shifts it so that it makes `numbers` of `sizes`, if it can.
  bool explains(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& numbers);

 private:
  std::int64_t rounded(std::int64_t size) const;
};

/// Those of what people write that make `numbers` of `sizes`.
std::vector<RealRule> real_rules(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& numbers);
/// Those with a factor that is a little more than `factor`, or less.
std::vector<RealRule> near_rules(double factor, bool divides, const std::vector<std::int64_t>& sizes,
                                 const std::vector<std::int64_t>& numbers);

/// Whether two numbers are the same but for what `float` does not keep.
bool nearly(double a, double b);
/// A constant that rounding has moved by a little as people write it: with few digits, or as a part of 64.
double tidy(double value);

}  // namespace fx::internal
