// What C++ divides is cut off towards zero: `(y.size(2) - x.size(2)) / 2` where either may be the larger.
#include <fxgraph/trace/size_terms.h>

namespace fx::internal {

// The quotient, or what is left of it; a floor division where no sample tells them apart.
std::optional<SizeTerms::Id> SizeTerms::truncated(const Values& values, Id whole, std::int64_t divisor) {
  const Values& of = values_[whole];
  bool is_quotient = true, is_rest = true, any_below = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    is_quotient = is_quotient && values[i] == of[i] / divisor;
    is_rest = is_rest && values[i] == of[i] - of[i] / divisor;
    any_below = any_below || (of[i] < 0 && of[i] % divisor != 0);
  }
  if (!any_below || (!is_quotient && !is_rest)) return std::nullopt;
  const Id zero = constant(0);
  const Id above = make(SizeOp::max, floor_of(whole, divisor), zero);
  const Id below = make(SizeOp::max, floor_of(make(SizeOp::sub, zero, whole), divisor), zero);
  const Id quotient = make(SizeOp::sub, above, below);
  return is_quotient ? quotient : make(SizeOp::sub, whole, quotient);
}

}  // namespace fx::internal
