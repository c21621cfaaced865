// What TorchScript's schemas and types take, in the words of a graph: nothing here makes nodes.
#pragma once

#include <ATen/core/function_schema.h>

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/run/operators.h>

namespace fx::internal {

/// Why no schema takes what a call gives, of what LibTorch throws then: one line, without its schemas.
std::string why_no_schema_fits(const std::exception& error);

/// Whether it is a number or None, or a tensor or None.
bool is_number(const c10::Type& type);
bool is_tensor(const c10::Type& type);

/// Throws Error(unsupported): `what`, "a list", is of values of different types.
[[noreturn]] void of_several_types(const std::string& what);

/// The type of an input: its annotation, else its default's, else a tensor. Throws Error(unsupported) for a container
/// that TorchScript has no type for, if it is used.
c10::TypePtr input_type(const Node& placeholder);

/// What a node gives an operator: its own arguments, or what fx::Call makes of them.
struct Given {
  const Node& node;
  ArgumentSpan args = node.args();
  KwargSpan kwargs = node.kwargs();

  /// What is given for the parameter; null where its default stands.
  const Argument* for_parameter(const c10::FunctionSchema& schema, std::size_t i) const;
};

/// The annotation for values of a type; empty where graphs have none.
std::string annotation_of(const c10::Type& type);

/// TorchScript has no bool for a Scalar: the overload that takes tensors in the places of bools and is otherwise the
/// same; null where there is none, and where no bool is given.
const c10::FunctionSchema* overload_without_bools(const Given& given, const c10::FunctionSchema& schema,
                                                  const std::function<bool(const Argument&)>& is_bool);

/// Throws Error(unsupported) for an operator that writes to the tensors of a list and returns nothing: TorchScript
/// takes the list for a value of its own, so that what is written counts as unseen.
void require_seen_writes(const Node& node, const c10::FunctionSchema& schema);

}  // namespace fx::internal
