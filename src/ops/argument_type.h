// What kind of value an argument is: of a literal always known, of a node when the call or annotation that makes it
// says so.
#pragma once

#include <fxgraph/ops/schema.h>

namespace fx::internal {

struct ArgumentType {
  SchemaType::Base base = SchemaType::Base::other;
  bool list = false;
  bool known = true;
  friend bool operator==(const ArgumentType&, const ArgumentType&) = default;
};

inline constexpr ArgumentType kUnknownType{SchemaType::Base::other, false, false};
inline constexpr ArgumentType kTensorType{SchemaType::Base::tensor};
inline constexpr ArgumentType kIntType{SchemaType::Base::integer};
inline constexpr ArgumentType kFloatType{SchemaType::Base::floating};
inline constexpr ArgumentType kBoolType{SchemaType::Base::boolean};
inline constexpr ArgumentType kIntListType{SchemaType::Base::integer, true};

/// Literals of no base (None, dict, slice, …) and containers give `other`; a list gives its elements' kind when they
/// agree. Looks back through at most a thousand nodes of arithmetic; beyond that the answer is kUnknownType.
ArgumentType argument_type(const Argument& argument);

/// True for the kinds that Python and TorchScript compute with without tensors: numbers and bools.
bool is_number_type(const ArgumentType& kind);

}  // namespace fx::internal
