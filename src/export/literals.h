// Arguments of an exported graph that name no value: numbers, strings, types, and lists of such.
//
// The numbers of element types, layouts and memory formats are the schema's own: not LibTorch's, not ours.
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include <fxgraph/export/json.h>
#include <fxgraph/ir/argument.h>

namespace fx::pt2 {

/// The argument that the schema's `kind` (`as_int`, `as_scalar_type`, …) and `value` say; nothing when it is of another
/// kind. Throws Error(unsupported) for the number of a type that is not known.
std::optional<Argument> read_literal(const std::string& kind, const Json& value);

/// The schema's union for such an argument; null for one that it has no words for.
Json write_literal(const Argument& value);
Json write_float(double value);

}  // namespace fx::pt2
