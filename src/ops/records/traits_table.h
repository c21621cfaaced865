// What operators do that their declarations do not say, as data: groups, randomness, hidden writes and aliases.
#pragma once

#include <fxgraph/ops/schema.h>

namespace fx::internal {

/// Fills in traits, hidden writes and aliases, and switches, from the declaration and the tables. Run on every schema.
void complete_schema(OperatorSchema& schema);

}  // namespace fx::internal
