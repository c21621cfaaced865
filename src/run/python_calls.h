// Functions of Python that no operator is: `operator.getitem`, `torch._assert`, `builtins.getattr`.
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

/// The function for a target, or null. Asked for what is no operator.
const PythonFunction* find_python_function(Op op, Symbol target);

}  // namespace fx
