// Whether two expressions are the same number.
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <optional>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/export/size_fit.h>

namespace fx::pt2 {

/// Values of the symbols, within their ranges and such that `takes` holds, for which the two are different numbers;
/// nothing when none of some hundred tried is.
std::optional<Symbols> where_they_differ(const SizeExpr& left, const SizeExpr& right, const Symbols& example,
                                         const SizeRanges& ranges, const std::function<bool(const Symbols&)>& takes);

}  // namespace fx::pt2
