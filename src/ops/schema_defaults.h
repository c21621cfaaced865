// Default values in declarations.
#pragma once

#include <fxgraph/ops/schema.h>
#include <fxgraph/ops/schema_scanner.h>

namespace fx::internal {

/// Reads the default of an argument of this type, which decides what a number means: LibTorch prints dtypes, layouts
/// and memory formats by number.
Argument read_default(SchemaScanner& in, const SchemaType& type);

}  // namespace fx::internal
