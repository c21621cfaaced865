// What is known of the C++ values in generated code, and how literals are spelt. For what writes C++: cpp*.cc, and
// nn/nn_construction.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ops/schema.h>

namespace fx::internal {

enum class CppKind : std::uint8_t {
  tensor,
  scalar,  ///< at::Scalar
  integer,
  floating,
  boolean,
  string,
  tensors,   ///< a vector
  integers,  ///< a vector
  tuple,     ///< of `elements`
  stack,     ///< what the dispatcher left: IValues, `elements` says which
  nothing,   ///< a call without a result
  other,     ///< something to pass on: a device, a dtype
};

struct CppType {
  CppKind kind = CppKind::tensor;
  std::vector<CppType> elements{};
};

/// The type of one result of an operator.
CppType cpp_type_of(const SchemaType& type);
/// How a local of that type is declared: `torch::Tensor`, or `auto`.
std::string_view cpp_declared(const CppType& type);
/// Takes a value of that type out of an IValue: `.toTensor()`. Empty for kinds that have none.
std::string_view cpp_from_ivalue(CppKind kind);

/// `"text"` with C++ escapes.
std::string cpp_string(std::string_view text);
/// A number, string, dtype, device, layout, memory format or None by itself. Throws Error(unsupported) for anything
/// else.
std::string cpp_literal(const Argument& argument);
std::string cpp_dtype(DType dtype);

/// Another word for `name` when C++ or the generated code has a use for it.
std::string cpp_identifier(std::string_view name);

}  // namespace fx::internal
