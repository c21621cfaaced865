// Remainders, and what is missing to a multiple: padding.
#include <algorithm>
#include <numeric>
#include <set>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
// term % divisor, and what is missing to a multiple.
std::optional<SizeTerms::Id> SizeTerms::remainder(const Values& values, Id term) {
  constexpr std::int64_t kLargestDivisorOfRemainders = 128;
  const Values& of = values_[term];
  // Two numbers alone may be many things: they are taken for what is odd or even.
  const bool is_parity = std::set<std::int64_t>(values.begin(), values.end()).size() < 3;
  std::int64_t down = 0, up = 0, largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) return std::nullopt;
    down = std::gcd(down, of[i] - values[i]);
    up = std::gcd(up, of[i] + values[i]);
    largest = std::max(largest, values[i]);
  }
  const auto divisor_above = [&](std::int64_t multiple) {
    std::int64_t found = 0;
    const std::int64_t most = is_parity ? 2 : kLargestDivisorOfRemainders;
    for (std::int64_t divisor = largest + 1; divisor <= std::min(multiple, most); ++divisor) {
      if (multiple % divisor != 0) continue;
      ambiguous_ = ambiguous_ || found != 0;
      if (found == 0) found = divisor;
    }
    return found;
  };
  if (const std::int64_t divisor = divisor_above(down)) return make(SizeOp::mod, term, constant(divisor));
  if (const std::int64_t divisor = divisor_above(up))
    return make(SizeOp::mod, make(SizeOp::sub, constant(0), term), constant(divisor));
  return std::nullopt;
}

}  // namespace fx::internal
