// What patterns of rules have in common: short words for arithmetic in all its spellings, and conditions on types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/matchers/match.h>
#include <fxgraph/rewriter/rule.h>

namespace fx::rules {

/// `text` with `$add`, `$sub`, `$mul` and `$div` standing for the operator with a tensor or a number as its second
/// operand.
std::string spelled(std::string_view text);

/// A list of sizes, strides or dimensions as an argument.
Argument list_of(const std::vector<std::int64_t>& numbers);

bool is_floating(DType type);
/// True when the tensor called `name` is known to be of a floating-point type.
bool is_floating(const Match& match, std::string_view name);
/// The same, or the calls that make the value give floating-point numbers and nothing else: for patterns that compute
/// something else on whole numbers. Looks back through a few dozen calls.
Decision surely_floating(const Match& match, std::string_view name);
/// True when both are known and of one type.
bool same_type(const Match& match, std::string_view a, std::string_view b);

}  // namespace fx::rules
