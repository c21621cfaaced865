// How many pairs there are: n · (n - 1) / 2 of other elements, n · (n + 1) / 2 with each element itself.
#include <fxgraph/trace/size_terms.h>

namespace fx::internal {

std::optional<SizeTerms::Id> SizeTerms::pairs(const Values& values) {
  Values twice = values;
  for (std::int64_t& value : twice) value *= 2;
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

}  // namespace fx::internal
