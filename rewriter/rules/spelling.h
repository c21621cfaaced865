// What rules have in common: arguments, and conditions on types.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/matchers/match.h>
#include <fxgraph/rewriter/rule.h>

namespace fx::rules {

/// The path that a get_attr or a call_module names.
std::string path_of(const Node& node);
/// The overload that the node calls, however that is spelled: `aten::add.Tensor` for `x + y`; empty when there is none.
/// Rules ask for this, never for the target as it is written.
Symbol operator_of(const Node& node);
/// The operators that a call may be of, as packets: that of operator_of(), or those that it could stand for.
std::vector<Symbol> possible_packets(const Node& call);
/// The last part of what a call names: `linear` of `torch.nn.functional.linear`, `aten::linear` and `x.linear(…)`.
std::string_view last_name(const Node& call);

/// True when the operator is of one of these packets.
bool is_one_of(std::span<const std::string_view> packets, Symbol target);

/// A list of sizes, strides or dimensions as an argument.
Argument list_of(const std::vector<std::int64_t>& numbers);

bool is_floating(DType type);
/// True when the tensor called `name` is known to be of a floating-point type.
bool is_floating(const Match& match, std::string_view name);
/// True when LibTorch surely has the operator `packet` (see has_kernel_types) for the value called `name`, and that is
/// of a floating-point type: for patterns that compute something else on whole numbers, or run where the operator does
/// not. When the type is not known, looks at the calls that make the value, through a few dozen.
Decision has_kernel(const Match& match, std::string_view name, std::string_view packet);
/// True when both are known and of one type.
bool same_type(const Match& match, std::string_view a, std::string_view b);

}  // namespace fx::rules
