// What C++ divides is cut off towards zero: `(y.size(2) - x.size(2)) / 2` where either may be the larger.
#include <algorithm>

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

// `(n - kernel) / stride + 1`, which is one even where the kernel is larger than n.
std::optional<SizeTerms::Id> SizeTerms::windows(const Values& values) {
  constexpr std::int64_t kLargestStride = 16, kLargestKernel = 16;
  const std::vector<Id> pool = first_of_pool();
  for (const Id term : pool) {
    for (const std::int64_t shift : {1, 0}) {
      Values quotients = values;
      for (std::int64_t& each : quotients) each -= shift;
      for (std::int64_t stride = 2; stride <= kLargestStride; ++stride) {
        for (std::int64_t kernel = 1; kernel <= kLargestKernel; ++kernel) {
          bool is_quotient = true, is_rest = stride == 2;  // `round((n - kernel) / 2.)`
          for (std::size_t i = 0; i < values.size() && (is_quotient || is_rest); ++i) {
            const std::int64_t of = values_[term][i] - kernel;
            is_quotient = is_quotient && quotients[i] == of / stride;
            is_rest = is_rest && quotients[i] == of - of / stride;
          }
          if (!is_quotient && !is_rest) continue;
          if (const auto id = truncated(quotients, offset(term, -kernel), stride)) return offset(*id, shift);
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace fx::internal
