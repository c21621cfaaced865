// How much each operator computes, as data: a formula a row, over the sizes of one call, which numbers and expressions
// go through alike.
#pragma once

#include <optional>
#include <span>
#include <string_view>

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

/// What one call does and moves; not known when shapes or a formula are missing.
struct CallCost {
  Operations operations;               ///< counts
  SizeExpr bytes_read, bytes_written;  ///< views move nothing
  bool known = true;                   ///< else the rest is a lower bound
};
CallCost cost_of_call(const CallShapes& call, const SizeExpr& input_bytes);
SizeExpr bytes_of(const TensorType& type);  ///< of its elements

/// The operator that a node calls, without its overload, or the function as it is spelt.
Symbol packet_symbol(const Node& node, const Call& call);

/// A kernel that takes its weight and bias packed, by the call that packs them, once for many runs.
struct PackedKernel {
  std::string_view run, pack;
  std::string_view computes;           ///< an overload
  std::span<const std::size_t> given;  ///< of the packing's arguments those that the overload has behind its input
};
/// That which `run` is; null for others.
const PackedKernel* find_packed_kernel(Symbol run);
bool packs(const Node& node);
/// The kernel that a node calls, by what its second argument packs; null where it is none.
const PackedKernel* packed_kernel(const Node& node);

}  // namespace fx
