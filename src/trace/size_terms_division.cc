// Divisions of one term, rounded down or up.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kLargestStride = 8,
                       kLargestKernel = 16;  // of windows: what is added otherwise is at most the divisor

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
    for (const std::int64_t offset : {std::int64_t{0}, divisor - 1}) {
      if (!does(offset)) continue;
      ++ways;
      if (!best) best = offset;
    }
    // Of multiples nobody can tell, and nobody has to.
    const bool is_exact = std::all_of(of.begin(), of.end(), [&](std::int64_t value) { return value % divisor == 0; });
    if (is_exact && does(0)) return floor_of(term, divisor);
    const bool is_usual = divisor <= kLargestStride || divisor % 10 == 0 || (divisor & (divisor - 1)) == 0;
    const bool is_near =
        is_usual && divisor <= kLargestDivisor && std::abs(nearest) <= std::max(divisor, kLargestKernel);
    if (!best && any_offset && is_near) best = nearest, ways = low == high ? 1 : 2;
    if (!best) continue;
    ambiguous_ = ambiguous_ || found || ways > 1;
    if (!found) found = {divisor, *best};
  }
  if (!found) return std::nullopt;
  return floor_of(offset(term, found->second), found->first);
}

}  // namespace fx::internal
