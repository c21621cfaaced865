// Calls that FX writes by their Python names: `operator.getitem`, `torch._assert`, `builtins.getattr`, `operator.add`,
// tensor methods. Some are functions here, the others stand for operators whose overload the values decide.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include <fxgraph/ir/node.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/support/symbol.h>

namespace fx {

/// A Python function written in C++.
struct PythonFunction {
  const char* target;                   ///< `operator.getitem`; a method is `.float`
  std::vector<const char*> parameters;  ///< names, for keyword arguments
  c10::IValue (*function)(std::vector<c10::IValue>& args);
  std::size_t least = parameters.size();  ///< how many values it must have

  /// Throws Error(execution) for fewer.
  c10::IValue call(std::vector<c10::IValue>& args) const;
};

/// The function for a call_function target, or null.
const PythonFunction* find_python_function(Symbol target);
/// The function for a call_method target, or null.
const PythonFunction* find_python_method(Symbol method);

/// The operator packets that a call_function target may stand for, in the order to try; empty when it is none:
/// `operator.iadd` -> aten::add_, aten::add; `torch.relu` -> aten::relu; `aten::add` -> itself.
std::vector<Symbol> packets_of_function(Symbol target);
/// The same for a call_method target.
std::vector<Symbol> packets_of_method(Symbol method);
/// The same for what a node calls.
std::vector<Symbol> packets_of(const Node& call);

}  // namespace fx
