// What kinds of values Python's functions, methods, attributes and annotations give, as data.
#pragma once

#include <string_view>

#include <fxgraph/ops/argument_type.h>

namespace fx::internal {

/// Null for names that are in no table. O(rows).
/// @{
const ArgumentType* attribute_type(std::string_view name);  ///< of `getattr(tensor, name)`
const ArgumentType* method_type(std::string_view name);     ///< `size` and `stride` asked for one dimension
const ArgumentType* function_type(std::string_view name);
const ArgumentType* annotated_type(std::string_view annotation);
/// Of two ints; a float on either side gives a float instead, but for comparisons.
const ArgumentType* arithmetic_type(std::string_view name);
/// @}
/// The annotation that means this kind; empty where none does.
std::string_view annotation_of(const ArgumentType& kind);

}  // namespace fx::internal
