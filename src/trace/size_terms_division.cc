// Divisions of one term, rounded down, up or to the nearest, and what is affine in one: `2 * (n / 2) + 1`.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kLargestFraction = 16;

// What people divide by: all small numbers, and round ones. Round ones first, where several would do.
const std::vector<std::int64_t>& divisors() {
  static const auto& all = *new std::vector<std::int64_t>([] {
    std::vector<std::int64_t> made = {80,  96,  100, 128, 160, 192, 200,  256, 320,
                                      384, 400, 500, 512, 640, 768, 1000, 1024};
    for (std::int64_t each = 2; each <= SizeTerms::kLargestDivisor; ++each) made.push_back(each);
    const auto rank = [](std::int64_t each) { return (each & (each - 1)) == 0 ? 0 : each % 10 == 0 ? 1 : 2; };
    std::sort(made.begin(), made.end(), [&](auto a, auto b) { return std::pair(rank(a), a) < std::pair(rank(b), b); });
    return made;
  }());
  return all;
}

}  // namespace

// (term + offset) // divisor: of those that do, the plainest.
std::optional<SizeTerms::Id> SizeTerms::division(const Values& values, Id term, bool any_offset) {
  const Values& of = values_[term];
  std::optional<std::pair<std::int64_t, std::int64_t>> found;  // divisor, offset
  for (const std::int64_t divisor : divisors()) {
    std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < values.size(); ++i) {
      low = std::max(low, divisor * values[i] - of[i]);
      high = std::min(high, divisor * values[i] - of[i] + divisor - 1);
    }
    if (low > high) continue;
    const auto does = [&](std::int64_t offset) { return low <= offset && offset <= high; };
    const std::int64_t nearest = std::abs(low) < std::abs(high) ? low : high;
    std::optional<std::int64_t> best;
    int ways = 0;
    for (const std::int64_t offset : {std::int64_t{0}, divisor - 1, divisor / 2}) {
      if (!does(offset) || (divisor == 2 && offset == divisor / 2 && best == divisor - 1)) continue;
      ++ways;
      if (!best) best = offset;
    }
    // Of multiples nobody can tell, and nobody has to.
    if (std::all_of(of.begin(), of.end(), [&](std::int64_t value) { return value % divisor == 0; })) ways = 1;
    if (!best && any_offset) best = nearest, ways = low == high ? 1 : 2;
    if (!best) continue;
    ambiguous_ = ambiguous_ || found || ways > 1;
    if (!found) found = {divisor, *best};
  }
  if (!found) return std::nullopt;
  return floor_of(offset(term, found->second), found->first);
}

// factor · term // divisor: what is resized by 1.5 or 0.75; or rounded up, or to the nearest.
std::optional<SizeTerms::Id> SizeTerms::fraction(const Values& values, Whole whole) {
  for (const Id term : std::vector<Id>(pool_)) {
    const Values& of = values_[term];
    struct Found {
      std::int64_t factor, divisor, offset;
    };
    std::optional<Found> found;
    for (std::int64_t divisor = 2; divisor <= kLargestFraction; ++divisor) {
      for (std::int64_t factor = 2; factor <= kLargestFraction; ++factor) {
        if (std::gcd(factor, divisor) != 1) continue;
        for (const std::int64_t offset : {std::int64_t{0}, divisor - 1, divisor / 2}) {
          if ((offset == 0) != (whole == Whole::down)) continue;
          bool fits = true;
          for (std::size_t i = 0; i < values.size() && fits; ++i)
            fits = floor_divide(factor * of[i] + offset, divisor) == values[i];
          if (!fits) continue;
          ambiguous_ = ambiguous_ || found;
          if (!found) found = {factor, divisor, offset};
        }
      }
    }
    if (found) return floor_of(offset(scaled(term, found->factor), found->offset), found->divisor);
  }
  return std::nullopt;
}

// factor · ((term + a) // divisor) + b
std::optional<SizeTerms::Id> SizeTerms::scaled_division(const Values& values) {
  std::int64_t common = 0;
  for (const std::int64_t value : values) common = std::gcd(common, value - values[0]);
  const std::vector<Id> pool = first_of_pool();
  Values quotients = values;
  for (const Id term : pool) {
    for (std::int64_t factor = 1; factor <= std::min(common, kLargestDivisor); ++factor) {
      if (common % factor != 0) continue;
      const std::int64_t rest = ((values[0] % factor) + factor) % factor;
      // A quotient that is the plainest first: what else is added may be so before the division, or behind it.
      for (const bool any_offset : {false, true}) {
        for (const std::int64_t sign : {1, -1}) {
          for (const std::int64_t by : {rest, rest - factor}) {
            if ((factor == 1 && sign == 1) || (any_offset && by != rest)) continue;
            for (std::size_t i = 0; i < values.size(); ++i) quotients[i] = sign * (values[i] - by) / factor;
            const std::optional<Id> quotient = division(quotients, term, any_offset);
            if (!quotient) continue;
            const Id multiple = scaled(*quotient, factor);
            return sign > 0 ? offset(multiple, by) : make(SizeOp::sub, constant(by), multiple);
          }
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace fx::internal
