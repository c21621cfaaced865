// What calls of arithmetic say of the numbers that they make, and whether two expressions are the same number.
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <fxgraph/export/size_fit.h>
#include <fxgraph/export/tensors.h>
#include <fxgraph/ir/graph.h>

namespace fx::pt2 {

/// `operator.ge` for `aten::ge.int`, `aten::ge` and `operator.ge`; other targets as they are.
std::string number_operator(Symbol target);

/// True when a symbol stands in it.
bool varies(const SizeExpr& expr);

/// The expression that `node`'s call is of the numbers that it takes, which `value_of` gives; nothing when it is no
/// arithmetic of numbers.
std::optional<SizeExpr> said_by(const Node& node, const std::function<std::optional<SizeExpr>(const Node&)>& value_of);

/// Values of the symbols, within their ranges and such that `takes` holds, for which the two are different numbers;
/// nothing when none of some hundred tried is.
std::optional<Symbols> where_they_differ(const SizeExpr& left, const SizeExpr& right, const Symbols& example,
                                         const SizeRanges& ranges, const std::function<bool(const Symbols&)>& takes);

}  // namespace fx::pt2
