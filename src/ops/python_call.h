// Python calls as the operator calls that do exactly the same.
#pragma once

#include <optional>
#include <vector>

#include <fxgraph/ops/schema.h>

namespace fx::internal {

struct AtenCall {
  const OperatorSchema* schema = nullptr;
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
};

/// Returns the call of one overload that does exactly what `node` does: a call_function of an operator or Python
/// function, or a call_method. Nothing for any other node and when no single overload does it.
std::optional<AtenCall> aten_call(const Node& node);

/// True when a row of the table says that this call of a Python function has no effects.
bool is_pure_python_call(const Node& node);

/// The operators that calls of this function or method may end in, whatever the arguments; empty for an unknown name.
std::vector<Symbol> candidate_packets(Op op, Symbol target);

/// The name under which the tables know a target: methods start with a dot, `torch.functional.` is `torch.`.
std::string python_name(Op op, Symbol target);

}  // namespace fx::internal
