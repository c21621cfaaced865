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

/// The expression that `node`'s call is of the numbers that it takes, which `value_of` gives; nothing when it is no
/// arithmetic of numbers.
std::optional<SizeExpr> said_by(const Node& node, const std::function<std::optional<SizeExpr>(const Node&)>& value_of);

/// The size in dimension `dim` of what a call resizes by factors (`TruncToInt(2.5*ToFloat(n))`), of its input's sizes,
/// which `sizes_of` gives; nothing for other calls.
std::optional<SizeExpr> resized_by(const Node& node, std::size_t dim,
                                   const std::function<const std::vector<SymbolicSize>&(const Node&)>& sizes_of);

/// The size of a diagonal, the last of its dimensions; nothing for other calls and dimensions.
std::optional<SizeExpr> diagonal_of(const Node& node, std::size_t dim,
                                    const std::function<const std::vector<SymbolicSize>&(const Node&)>& sizes_of);

/// The number of windows of `im2col`, its last dimension: of what two sizes that may both vary are; nothing for other
/// calls and dimensions.
std::optional<SizeExpr> windows_of(const Node& node, std::size_t dim,
                                   const std::function<const std::vector<SymbolicSize>&(const Node&)>& sizes_of);

/// Values of the symbols, within their ranges and such that `takes` holds, for which the two are different numbers;
/// nothing when none of some hundred tried is.
std::optional<Symbols> where_they_differ(const SizeExpr& left, const SizeExpr& right, const Symbols& example,
                                         const SizeRanges& ranges, const std::function<bool(const Symbols&)>& takes);

}  // namespace fx::pt2
