// What kind of value an argument is: of a literal always known, of a node when the call or annotation that makes it
// says so.
#pragma once

#include "ops/schema.h"

namespace fx::internal {

struct ValueKind {
  SchemaType::Base base = SchemaType::Base::other;
  bool list = false;
  bool known = true;
  friend bool operator==(const ValueKind&, const ValueKind&) = default;
};

inline constexpr ValueKind kUnknownValue{SchemaType::Base::other, false, false};

/// Literals of no base (None, dict, slice, …) and containers give `other`; a list gives its elements' kind when they
/// agree. Looks back through at most a few dozen nodes of integer arithmetic; beyond that the answer is kUnknownValue.
ValueKind value_kind(const Argument& argument);

/// True for the kinds that Python and TorchScript compute with without tensors: numbers and bools.
bool is_number_kind(const ValueKind& kind);

}  // namespace fx::internal
