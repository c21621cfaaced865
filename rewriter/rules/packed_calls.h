// What rules that lower to packed kernels share.
#pragma once

#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/rewriter.h>

namespace fx::rules {

/// `memory_format=channels_last`.
const std::vector<NamedArgument>& channels_last_kwargs();

/// `contiguous(value, channels_last)`: dense, with channels last; the value itself when it is that already.
Node& channels_last(Rewriter& rewriter, Node& value);

/// `clone(weight, channels_last)`: with the strides of that layout also where sizes of 1 leave a choice.
Node& channels_last_weight(Rewriter& rewriter, Node& weight);

/// True for `contiguous(x, channels_last)`.
bool is_channels_last_call(const Node& node);

/// True for `contiguous(x)`.
bool is_plain_contiguous(const Node& node);

bool is_float_on_cpu(const TensorInfo& info);

/// What is computed from attributes alone, and goes into packing, addmm or addcmul alone, becomes an attribute: nothing
/// of it is left for each run. Returns how many values.
std::size_t prepare_weights(GraphModule& module);

}  // namespace fx::rules
