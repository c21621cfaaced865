// The smaller or larger of two: `min(x.size(0), y.size(0))`, `min(1000, n)`, `max(a - b, 0)`; and what is kept between
// numbers: `clamp(n, 4, 20)`.
#include <algorithm>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {

// Bounded by another term, or by a number, which it has reached in some samples: the largest of all, or the smallest.
std::optional<SizeTerms::Id> SizeTerms::bounded(const Values& values, Id term) {
  const Values& of = values_[term];
  for (const SizeOp op : {SizeOp::min, SizeOp::max}) {
    const bool is_min = op == SizeOp::min;
    const auto either = [&](std::int64_t a, std::int64_t b) { return is_min ? std::min(a, b) : std::max(a, b); };
    bool is_bound = true, is_reached = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      is_bound = is_bound && either(of[i], values[i]) == values[i];
      is_reached = is_reached || of[i] == values[i];
    }
    if (!is_bound || !is_reached) continue;
    for (const Id other : pool_) {
      bool fits = other != term;
      for (std::size_t i = 0; i < values.size() && fits; ++i) fits = either(of[i], values_[other][i]) == values[i];
      if (fits) return make(op, term, other);
    }
    const std::int64_t limit =
        is_min ? *std::max_element(values.begin(), values.end()) : *std::min_element(values.begin(), values.end());
    bool fits = true;
    for (std::size_t i = 0; i < values.size() && fits; ++i) fits = either(of[i], limit) == values[i];
    if (fits) return make(op, term, constant(limit));
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  bool fits = true, is_between = false;
  for (std::size_t i = 0; i < values.size() && fits; ++i) {
    fits = std::clamp(of[i], *least, *most) == values[i];
    is_between = is_between || (*least < of[i] && of[i] < *most);
  }
  if (!fits || !is_between) return std::nullopt;
  return make(SizeOp::min, make(SizeOp::max, term, constant(*least)), constant(*most));
}

std::optional<SizeTerms::Id> SizeTerms::bounded(const Values& values) {
  constexpr std::size_t kMostForDifferences = 24;
  const std::vector<Id> pool = pool_;
  for (const Id term : pool) {
    if (const auto id = bounded(values, term)) return id;
  }
  for (const Id a : pool) {
    for (const Id b : pool) {
      if (pool.size() > kMostForDifferences || a == b) continue;
      if (const auto id = bounded(values, make(SizeOp::sub, a, b))) return id;
      if (a > b) continue;
      if (const auto id = bounded(values, make(SizeOp::mul, a, b))) return id;
    }
  }
  return std::nullopt;
}

}  // namespace fx::internal
