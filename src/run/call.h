// Calling whatever a node's target names, with values: operators, Python-level functions, tensor methods.
//
// fx::Call is asked on every call; plans (run/plan.h) ask once and are faster.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>

#include <fxgraph/ir/node.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/support/symbol.h>

namespace fx {

/// Calls a call_function target: `aten::add.Tensor`, `torch.relu`, `operator.getitem`. Several results come as a tuple.
/// Throws Error(not_found) when there is no such operator, Error(execution) when no overload fits; what the operator
/// itself throws passes through.
c10::IValue call_function_target(Symbol target, const CallValues& call);

/// Calls the method of `call.args[0]`.
c10::IValue call_method_target(Symbol method, const CallValues& call);

/// The operator that such a call is, with its arguments on the empty `stack`; null when it is none, or they do not fit.
const TorchOperator* bind_call(Op op, Symbol target, const CallValues& call, torch::jit::Stack& stack);

/// The error for a target that nobody knows.
std::string no_such_target(Op op, Symbol target);

}  // namespace fx
