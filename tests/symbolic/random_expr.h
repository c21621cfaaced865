// Random expressions of three symbols, as trees that nothing was done to, and points to evaluate them at.
//
// It makes no numbers with a point, no conditions, no divisors that are negative but for -1 to -3, and no powers.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>

#include <fxgraph/symbolic/size_expr.h>

namespace fx::testing {

class RandomExpr {
 public:
  explicit RandomExpr(std::uint64_t seed) : random_(seed) {}

  int draw(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }

  SizeExpr tree(int depth) {
    if (depth == 0 || draw(5) == 0) return draw(2) ? symbol() : SizeExpr(draw(9) - 3);
    constexpr const char* kFunctions[] = {"Add", "Add", "Mul", "FloorDiv", "FloorDiv", "Mod", "Max", "Min"};
    const std::string function = kFunctions[draw(8)];
    SizeExpr left = tree(depth - 1), right = tree(depth - 1);
    if ((function == "FloorDiv" || function == "Mod") && draw(4) != 0) right = 1 + draw(5);
    return SizeExpr::call(function, {std::move(left), std::move(right)});
  }

  /// `2*a - 3*b + 1`
  SizeExpr linear() {
    SizeExpr sum = draw(9) - 4;
    for (int i = 0; i < 2; ++i) sum = sum + symbol() * (draw(7) - 3);
    return sum;
  }

  SizeExpr symbol() { return SizeExpr::symbol(std::string(1, "abc"[draw(3)])); }

  /// A value from 0 to `most` for each symbol.
  std::map<std::string, std::int64_t> point(int most) {
    return {{"a", draw(most + 1)}, {"b", draw(most + 1)}, {"c", draw(most + 1)}};
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace fx::testing
