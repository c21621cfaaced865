// Operators under the names that torch.export gives them. Thread-safety: as find_torch_operator.
#pragma once

#include <string>
#include <string_view>

#include <fxgraph/run/operators.h>

namespace fx::pt2 {

/// The operator that an exported program means by a target: `aten::cat` is aten.cat.default, whatever other overloads
/// there are. (Elsewhere a name without overload may leave the choice to the values: run/operators.h.) Null when there
/// is none.
const TorchOperator* find_exported_operator(Symbol target);

/// What is called here for a target of Python's: `aten::size.int` for `torch.ops.aten.sym_size.int`.
Symbol target_of(const std::string& text);

/// Python's text for a call of arithmetic on sizes and other numbers: `_operator.add` for `aten::add.int`; empty for
/// what is none, or has no name in Python's schema.
std::string python_number_call(const Node& node);
/// The same for a function of SizeExpr: `_operator.add` for `Add`.
std::string_view python_function(std::string_view function);

}  // namespace fx::pt2
