// Which operator a node calls, and what path it names, however either is written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <fxgraph/ir/node.h>

namespace fx::rules {

/// The path that a get_attr or a call_module names.
std::string path_of(const Node& node);
/// The overload that the node calls, however that is spelled, by its operator_name: `aten::add.Tensor` for `x + y`;
/// empty when there is none. Rules ask for this, never for the target as it is written.
Symbol operator_of(const Node& node);
/// The last part of what a call names: `linear` of `torch.nn.functional.linear`, `aten::linear` and `x.linear(…)`.
std::string_view last_name(const Node& call);

/// True when the operator is of one of these packets.
bool is_one_of(std::span<const std::string_view> packets, Symbol target);

}  // namespace fx::rules
