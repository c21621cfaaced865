// What two or three sizes make: j·a + k·b + c, a·b + c, k·a·b·c + d, and the parts of an image, (a // d)·(b // d).
#include <algorithm>
#include <cstdlib>
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

}  // namespace fx::internal
