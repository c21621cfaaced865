// Shapes of operators that LibTorch can only tell by running them, and that are dear to run: convolutions,
// pooling, norms, embeddings and some
// that take each element by itself. The tracer and ShapeProp share them, so that they agree.
#pragma once

#include <ATen/core/ivalue.h>

#include <fxgraph/support/symbol.h>

namespace fx::internal {

/// Returns the shape of the result as a meta tensor. Undefined for what it does not know: other memory layouts,
/// arguments that the operator refuses.
using ShapeFormula = at::Tensor (*)(const c10::IValue* arguments);

/// The formula for an operator that is given all its `count` arguments; null when there is none.
ShapeFormula shape_formula(Symbol target, std::size_t count);

}  // namespace fx::internal
