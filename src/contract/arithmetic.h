// What calls of arithmetic say of the numbers, and of the lists, that they make.
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ops/records/abstract_value.h>
#include <fxgraph/symbolic/size_expr.h>

namespace fx {

/// `operator.ge` for `aten::ge.int`, `aten::ge` and `operator.ge`; other targets as they are.
std::string number_operator(Symbol target);

/// What a call of arithmetic computes, as SymPy calls it where it knows it: `Add`, `StrictLessThan`; `Sub`, `Neg`,
/// `TrueDiv`, `Sqrt` and the like are no functions there. Empty for what is no arithmetic of numbers.
std::string_view arithmetic_of(Symbol target);

/// True for what holds or does not, and is 1 or 0: comparisons, And, Or, Not.
bool is_condition(const SizeExpr& expr);

/// What holds where a condition of whole numbers does not: `n < 5` for `n >= 5`.
SizeExpr negated(const SizeExpr& condition);

/// The call of whole numbers that an expression of this name is; none where there is none.
Symbol call_that_is(std::string_view function);

/// The expression that `node`'s call is of the numbers that it takes, which `value_of` gives; nothing when it is no
/// arithmetic of numbers. Comparisons are conditions, 1 where they hold.
std::optional<SizeExpr> said_by(const Node& node, const std::function<std::optional<SizeExpr>(const Node&)>& value_of);

/// What a call of `packet` makes of lists whose parts are known: `list[1:]`, `list[::-1]`, `list + list`, whether lists
/// of numbers are equal. Not known for any other.
AbstractValue made_of_lists(std::string_view packet, const AbstractValue::List& arguments);

}  // namespace fx
