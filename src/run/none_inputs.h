// Inputs that are None where a call wants a value: LibTorch's message of it names no input.
//
// Costs: nothing where no input is None, else the depth of the containers that are.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include <fxgraph/ir/node.h>

namespace fx::internal {

/// The inputs that are None, or undefined tensors, and the parts of containers that are: `mask`, `state[1]`, `d['m']`.
void add_none_inputs(std::vector<std::string>& found, const std::string& name, const c10::IValue& value);

/// What a failure of the node says: `cause`, and the first of the inputs that are None which the node reads; that alone
/// where the cause is about a None, or an assertion of LibTorch's.
std::string cause_of_failure(const Node& node, const std::vector<std::string>& none_inputs, const std::string& cause);

}  // namespace fx::internal
