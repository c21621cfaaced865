// How many pairs there are: n · (n - 1) / 2 of other elements, n · (n + 1) / 2 with each element itself; and what two
// or three sizes make: j·a + k·b + c, a + b + c, a·b + c, k·a·b·c + d, k·a // b.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

SizeTerms::Values difference(SizeTerms::Values from, const SizeTerms::Values& less) {
  for (std::size_t i = 0; i < from.size(); ++i) from[i] -= less[i];
  return from;
}

SizeTerms::Values product_of(SizeTerms::Values a, const SizeTerms::Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}

SizeTerms::Values scaled_values(std::int64_t factor, SizeTerms::Values values) {
  for (std::int64_t& value : values) value *= factor;
  return values;
}

}  // namespace

std::optional<SizeTerms::Id> SizeTerms::pairs(const Values& values) {
  const Values twice = scaled_values(2, values);
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

SizeTerms::Values SizeTerms::values_of_product(const std::vector<Id>& factors) const {
  Values product = values_[factors.front()];
  for (std::size_t f = 1; f < factors.size(); ++f) product = product_of(std::move(product), values_[factors[f]]);
  return product;
}

// k·a·b + c, k·a·b·c + d, and a·b + k·c + d: the tokens of an image and one more.
std::optional<SizeTerms::Id> SizeTerms::affine_in_product(const Values& values) {
  const std::vector<Id> pool = first_of_pool();
  std::vector<std::vector<Id>> products;
  for (std::size_t a = 0; a < pool.size(); ++a) {
    for (std::size_t b = a; b < pool.size(); ++b) products.push_back({pool[a], pool[b]});
  }
  const std::size_t num_pairs = products.size();
  for (std::size_t pair = 0; pair < num_pairs; ++pair) {
    for (const Id c : pool) {
      if (c < products[pair].back()) continue;
      products.push_back(products[pair]);
      products.back().push_back(c);
    }
  }
  const auto term_of = [this](const std::vector<Id>& factors) {
    Id term = factors.front();
    for (std::size_t i = 1; i < factors.size(); ++i) term = make(SizeOp::mul, term, factors[i]);
    return term;
  };
  for (const std::vector<Id>& factors : products) {
    if (const auto line = affine_of(values_of_product(factors), values)) return make_affine(term_of(factors), *line);
  }
  for (std::size_t pair = 0; pair < num_pairs; ++pair) {
    const Values rest = difference(values, values_of_product(products[pair]));
    if (const auto other = linear(rest)) return make(SizeOp::add, term_of(products[pair]), *other);
  }
  return std::nullopt;
}

// k·(a // d)·(b // d) + c, and with a third factor; rounded up as well: how many parts an image has, of so many pixels
// a side.
std::optional<SizeTerms::Id> SizeTerms::affine_in_grid(const Values& values) {
  constexpr std::size_t kMostSides = 8;
  const std::vector<Id> pool = first_of_pool(kMostSides);
  const auto parts = [this](Id term, std::int64_t side, std::int64_t more) {
    Values result = values_[term];
    for (std::int64_t& each : result) each = floor_divide(each + more, side);
    return result;
  };
  for (const std::int64_t side : {16, 8, 4, 2, 32, 14, 7, 3, 28}) {
    for (const std::int64_t more : {std::int64_t{0}, side - 1}) {
      for (std::size_t a = 0; a < pool.size(); ++a) {
        for (std::size_t b = a + 1; b < pool.size(); ++b) {
          const Values grid = product_of(parts(pool[a], side, more), parts(pool[b], side, more));
          const auto term_of = [&] {
            return make(SizeOp::mul, floor_of(offset(pool[a], more), side), floor_of(offset(pool[b], more), side));
          };
          if (const auto line = affine_of(grid, values)) return make_affine(term_of(), *line);
          for (const Id third : pool) {
            if (third == pool[a] || third == pool[b]) continue;
            if (const auto line = affine_of(product_of(grid, values_[third]), values))
              return make_affine(make(SizeOp::mul, third, term_of()), *line);
          }
        }
      }
    }
  }
  return std::nullopt;
}

// j·a + k·b + c: from the values that say most of both.
std::optional<SizeTerms::Id> SizeTerms::affine_in_two(const Values& values) {
  constexpr std::int64_t kLargestFactor = 16;
  const std::vector<Id> pool = first_of_pool();
  for (std::size_t first = 0; first < pool.size(); ++first) {
    for (std::size_t second = first + 1; second < pool.size(); ++second) {
      const Values &a = values_[pool[first]], &b = values_[pool[second]];
      for (std::int64_t factor = -kLargestFactor; factor <= kLargestFactor; ++factor) {
        if (factor == 0) continue;
        const auto line = affine_of(b, difference(values, scaled_values(factor, a)));
        if (!line || std::abs(line->scale) > kLargestFactor) continue;
        return make(SizeOp::add, scaled(pool[first], factor), make_affine(pool[second], *line));
      }
    }
  }
  return std::nullopt;
}

// a + b + k·c + d, a - b + k·c + d
std::optional<SizeTerms::Id> SizeTerms::sum_of_three(const Values& values) {
  for (const Id a : first_of_pool()) {
    const Values rest = difference(values, values_[a]);
    for (const Id b : first_of_pool()) {
      if (a == b) continue;
      if (b > a) {
        if (const auto c = linear(difference(rest, values_[b]))) return make(SizeOp::add, make(SizeOp::add, a, b), *c);
      }
      if (const auto c = linear(difference(rest, scaled_values(-1, values_[b]))))
        return make(SizeOp::add, make(SizeOp::sub, a, b), *c);
    }
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
