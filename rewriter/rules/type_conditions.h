// Conditions of rules on the element types of values.
#pragma once

#include <string_view>

#include <fxgraph/ir/type_set.h>
#include <fxgraph/matchers/match.h>
#include <fxgraph/rewriter/rule.h>

namespace fx::rules {

/// True when the tensor called `name` is known to be of a floating-point type.
bool is_floating(const Match& match, std::string_view name);
/// True when LibTorch surely has the operator `packet` (see has_kernel_types) for the value called `name`, and that is
/// of a floating-point type: for patterns that compute something else on whole numbers, or run where the operator does
/// not. When the type is not known, looks at the calls that make the value, through a few dozen.
Decision has_kernel(const Match& match, std::string_view name, std::string_view packet);
/// The value that the result of `node` has its type from, where that is of floats; null where it may have another.
const Node* typed_by(const Node& node);
/// True when both are known and of one type.
bool same_type(const Match& match, std::string_view a, std::string_view b);

}  // namespace fx::rules
