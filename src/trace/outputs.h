// Outputs: how what a traced program returns becomes the argument of the output node.
#pragma once

#include <ATen/core/ivalue.h>

#include <fxgraph/ir/argument.h>

namespace fx::internal {

class Session;

/// Tensors, numbers, strings and lists, tuples and dicts of such.
Argument ivalue_to_argument(Session& session, const c10::IValue& value);

}  // namespace fx::internal
