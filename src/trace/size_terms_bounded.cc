// The smaller or larger of two: `min(x.size(0), y.size(0))`, `min(1000, n)`, `max(a - b, 0)`; and what is kept between
// numbers: `clamp(n, 4, 20)`, `max(int(ceil(1.25 * n / 4)), 2)`.
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

// The expression `id` of `from`, of this one's `size` in the place of its only one.
SizeTerms::Id SizeTerms::copy(const SizeTerms& from, Id id, Id size) {
  const SizeTerm& term = from.terms_[id];
  switch (term.op) {
    case SizeOp::size: return size;
    case SizeOp::constant: return constant(term.number);
    case SizeOp::real: return real(term.real);
    default: break;
  }
  const Id a = copy(from, term.a, size);
  return make(term.op, a, is_of_one(term.op) ? a : copy(from, term.b, size));
}

// What the term explains where neither the least of the values is reached nor the largest, that so many times at least.
std::optional<SizeTerms::Id> SizeTerms::clamped(const Values& values, Id term, bool has_least, bool has_most,
                                                int times) {
  constexpr std::size_t kFewest = 2;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  Values between, of;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if ((has_least && values[i] == *least) || (has_most && values[i] == *most)) continue;
    between.push_back(values[i]);
    of.push_back(values_[term][i]);
  }
  // Small sizes are looked at closely, large ones are not: one number far out is no bound yet.
  if (between.size() < kFewest || between.size() == values.size() ||
      (has_most && std::count(values.begin(), values.end(), *most) < times))
    return std::nullopt;
  SizeTerms others;
  others.add_size(0, 0, of);
  if (others.pool_.empty()) return std::nullopt;
  const std::optional<Id> rule = others.of_one_size(between);
  if (!rule) return std::nullopt;
  const Id inside = copy(others, *rule, term);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t value = values_[inside][i];
    if (has_least) value = std::max(value, *least);
    if (has_most) value = std::min(value, *most);
    if (value != values[i]) return std::nullopt;
  }
  ambiguous_ = ambiguous_ || others.ambiguous_;
  Id id = inside;
  if (has_least) id = make(SizeOp::max, id, constant(*least));
  if (has_most) id = make(SizeOp::min, id, constant(*most));
  return id;
}

std::optional<SizeTerms::Id> SizeTerms::clamped(const Values& values, int times) {
  const std::vector<Id> pool = first_of_pool();
  for (const Id term : pool) {
    for (const auto& [has_least, has_most] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
      if (const auto id = clamped(values, term, has_least, has_most, times)) return id;
    }
  }
  return std::nullopt;
}

}  // namespace fx::internal
