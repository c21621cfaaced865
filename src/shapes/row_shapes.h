// What the rows of sizes (fxgraph/ops/records/size_inference.h) say of a call of LibTorch, as meta tensors.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <optional>
#include <span>

#include <fxgraph/ops/schema.h>

namespace fx::internal {

/// The results of an operator that is given all its arguments, whose tensors are meta tensors; in-place operators give
/// the tensor that they write. Nothing where no row decides, for views, and for sizes that the operator refuses:
/// LibTorch says why. Throws c10::Error for element types that it refuses.
std::optional<torch::jit::Stack> shapes_by_row(const OperatorSchema& schema, std::span<const c10::IValue> arguments);

/// True for an operator that shapes_by_row() may answer for.
bool has_shape_row(const OperatorSchema& schema);

}  // namespace fx::internal
