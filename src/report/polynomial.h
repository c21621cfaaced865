// Polynomial: numbers that follow from sizes, such as bytes and operations, as exact polynomials of them.
//
// Found from values on a grid: as many points along a variable as its degree and one more. Nothing is rounded; whether
// the numbers follow the polynomial elsewhere is for the caller to check, with at(). Cost: the grid times its longest
// side. Thread-safety: as a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fx {

/// A whole number, or a part of one.
struct Fraction {
  __extension__ using Wide = __int128;  ///< holds products of sizes and bytes
  Wide above = 0;                       ///< the numerator
  Wide below = 1;                       ///< positive, and without a common divisor

  /// Reduces `numerator` over `denominator`, which is not zero.
  static Fraction of(Wide numerator, Wide denominator);
  /// Exact arithmetic.
  /// @{
  friend Fraction operator+(const Fraction& a, const Fraction& b);
  friend Fraction operator*(const Fraction& a, const Fraction& b);
  friend bool operator==(const Fraction&, const Fraction&) = default;
  /// @}
};

/// A polynomial of several variables; zero when it has no terms.
class Polynomial {
 public:
  /// The one through `values` at the points `first[i] + k * step[i]`, k from 0 to `degrees[i]`, the last variable
  /// fastest. There must be as many values as points.
  static Polynomial through(std::span<const std::int64_t> first, std::span<const std::int64_t> step,
                            std::span<const int> degrees, std::span<const std::int64_t> values);

  /// The value for these variables.
  Fraction at(std::span<const std::int64_t> variables) const;
  /// True when it is the same everywhere.
  bool is_constant() const;
  /// True when every factor is a multiple of `unit`.
  bool is_in(std::int64_t unit) const;
  /// `2·x[0]·x[1]² + 64`, the factors divided by `unit`; `0` for zero. `names` are those of the variables.
  std::string str(std::span<const std::string> names, std::int64_t unit = 1) const;

 private:
  struct Term {
    std::vector<int> powers;
    Fraction factor;
  };
  std::vector<Term> terms_;  // of high degree first
};

}  // namespace fx
