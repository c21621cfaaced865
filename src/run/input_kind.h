// Whether a value is of the kind that an input's annotation says: int, float, bool or str. Thread-safety: no state.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>

#include <fxgraph/ir/node.h>

namespace fx::internal {

enum class InputKind : std::uint8_t { any, integer, floating, boolean, string };

/// True where the program itself asks for the type of the input. O(users).
bool asks_type(const Node& placeholder);

/// As its annotation says; `any` where that is none of these, or the program itself asks for the type. O(users).
InputKind input_kind(const Node& placeholder);

/// As Python's call of a scripted function takes them: a whole number will do for a floating one.
inline bool is_of_kind(const c10::IValue& value, InputKind kind) {
  switch (kind) {
    case InputKind::any: return true;
    case InputKind::integer: return value.isInt();
    case InputKind::floating: return value.isDouble() || value.isInt();
    case InputKind::boolean: return value.isBool();
    case InputKind::string: return value.isString();
  }
  return false;
}

/// Throws Error(invalid_argument), naming the input, where it is not.
void require_kind(const std::string& input, const c10::IValue& value, InputKind kind);

}  // namespace fx::internal
