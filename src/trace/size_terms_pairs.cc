// How many pairs there are: n · (n - 1) / 2 of other elements, n · (n + 1) / 2 with each element itself; and what two
// or three sizes make: a + k·b + c, a + b + c, k·a // b.
#include <cmath>
#include <limits>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {

std::optional<SizeTerms::Id> SizeTerms::pairs(const Values& values) {
  Values twice = values;
  for (std::int64_t& value : twice) value *= 2;
  const std::vector<Id> pool = pool_;
  for (const Id a : pool) {
    for (const std::int64_t by : {-1, 1}) {
      bool fits = true;
      for (std::size_t i = 0; i < values.size() && fits; ++i) fits = values_[a][i] * (values_[a][i] + by) == twice[i];
      if (fits) return floor_of(make(SizeOp::mul, a, offset(a, by)), 2);
    }
  }
  return std::nullopt;
}

std::optional<SizeTerms::Id> SizeTerms::sum_of_three(const Values& values) {
  const std::vector<Id> pool = pool_;
  const auto less = [](Values from, const Values& term) {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] -= term[i];
    return from;
  };
  for (const Id a : pool) {
    const Values rest = less(values, values_[a]);
    for (const Id b : pool) {
      if (b < a) continue;
      if (const auto c = known(less(rest, values_[b]))) return make(SizeOp::add, make(SizeOp::add, a, b), *c);
    }
    if (const auto other = linear(rest)) return make(SizeOp::add, a, *other);
  }
  return std::nullopt;
}

// By the only whole number that explains all values: how long a side is that keeps its ratio to one of so many.
std::optional<SizeTerms::Id> SizeTerms::scaled_quotient(const Values& values) {
  const std::vector<Id> pool = pool_;
  for (const Id a : pool) {
    for (const Id b : pool) {
      if (a == b) continue;
      double low = 1, high = std::numeric_limits<double>::max();
      for (std::size_t i = 0; i < values.size() && low < high; ++i) {
        const std::int64_t x = values_[a][i], y = values_[b][i];
        if (x <= 0 || y <= 0 || values[i] < 0) {
          high = 0;
          break;
        }
        const double ratio = static_cast<double>(y) / static_cast<double>(x);
        low = std::max(low, static_cast<double>(values[i]) * ratio);
        high = std::min(high, static_cast<double>(values[i] + 1) * ratio);
      }
      const double factor = std::ceil(low - 1e-9);
      if (!(factor < high) || factor > 1 << 20) continue;
      ambiguous_ = ambiguous_ || factor + 1 < high;
      const auto k = static_cast<std::int64_t>(factor);
      bool fits = k > 1;
      for (std::size_t i = 0; i < values.size() && fits; ++i)
        fits = floor_divide(k * values_[a][i], values_[b][i]) == values[i];
      if (fits) return make(SizeOp::floordiv, scaled(a, k), b);
    }
  }
  return std::nullopt;
}

}  // namespace fx::internal
