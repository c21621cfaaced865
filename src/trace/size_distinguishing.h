// Distinguishing inputs: sizes that tell rules apart, those next to the steps of a division, a remainder or a bound.
// Another divisor has its steps elsewhere.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>

namespace fx::internal {

/// A size of what a symbol stands for at which another rule gives another number.
struct DistinguishingSize {
  std::string symbol;
  std::int64_t size;
  auto operator<=>(const DistinguishingSize&) const = default;
};

/// Next to the steps of what is divided in `explained`. Of sizes that `allows(symbol, size)` lets be.
std::vector<DistinguishingSize> distinguishing_sizes(
    const std::vector<SizeExpr>& explained, const std::function<bool(const std::string&, std::int64_t)>& allows);

}  // namespace fx::internal
