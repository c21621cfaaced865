// Arguments of an exported graph that name no value: numbers, strings, types, and lists of such. Thread-safety: pure.
#pragma once

#include <optional>
#include <string>

#include <fxgraph/export/json.h>
#include <fxgraph/ir/argument.h>

namespace fx::pt2 {

/// The argument that the schema's `kind` (`as_int`, `as_scalar_type`, …) and `value` say; nothing when it is of another
/// kind. Throws Error(unsupported) for the number of a type that is not known.
std::optional<Argument> read_literal(const std::string& kind, const Json& value);

}  // namespace fx::pt2
