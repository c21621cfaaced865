// Shapes of operators that LibTorch can only tell by running them, or by many steps, and that are dear: convolutions,
// pooling, norms, recurrent networks, embeddings, padding and some that take each element by itself. The tracer and
// ShapeProp share them, so that they agree.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include <fxgraph/support/symbol.h>

namespace fx::internal {

/// Returns the shapes of the results of an operator that is given all its `count` arguments, as meta tensors. Empty for
/// what is not known: other operators, other memory layouts, arguments that the operator refuses. Throws c10::Error for
/// types that it refuses, where it would say so only after some time.
std::vector<at::Tensor> shapes_by_formula(Symbol target, const c10::IValue* arguments, std::size_t count);

}  // namespace fx::internal
