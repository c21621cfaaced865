// How much each operator computes, as data: a formula a row, over the sizes of one call, which numbers and expressions
// go through alike.
#pragma once

#include <optional>
#include <span>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/abstract_value.h>

namespace fx {

/// The shapes of everything in a call. Tensors are in the order of the operator's arguments; parameters of a module
/// come after its inputs, so that `conv(x)` and `conv2d(x, weight, bias)` look alike.
struct CallShapes {
  const Node& node;
  const Call& call;  ///< nothing for modules
  Symbol packet;     ///< `aten::conv2d`
  std::span<const TensorType> inputs;
  std::span<const TensorType> outputs;
  std::size_t num_parameters = 0;  ///< how many inputs, at the end, are a module's parameters
};

/// Multiply-adds and floating-point operations of one call.
struct Operations {
  SizeExpr macs;
  SizeExpr flops;
};

/// Nothing when shapes or a formula are missing.
std::optional<Operations> operations_of(const CallShapes& call);

}  // namespace fx
