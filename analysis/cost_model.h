// The operators' formulas. Internal to analysis/cost*.cc.
#pragma once

#include <span>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/ops/call.h>

namespace fx {

/// The shapes of everything in a call. Tensors are in the order of the operator's arguments; parameters of a module
/// come after its inputs, so that `conv(x)` and `conv2d(x, weight, bias)` look alike.
struct CallShapes {
  const Node& node;
  const Call& call;  ///< nothing for modules
  Symbol packet;     ///< `aten::conv2d`
  std::span<const TensorInfo* const> inputs;
  std::span<const TensorInfo> outputs;
  std::int64_t input_bytes = 0;    ///< of the distinct inputs
  std::size_t num_parameters = 0;  ///< how many inputs, at the end, are a module's parameters
};

/// Operations and bytes of one call; `known` is false when shapes or a formula are missing. parameter_bytes is not set.
NodeCost cost_of_call(const CallShapes& call);

}  // namespace fx
