// What rules that lower to packed kernels share.
#pragma once

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/rewriter.h>

namespace fx::rules {

/// `contiguous(value, channels_last)`: dense, with channels last; the value itself when it is that already.
Node& channels_last(Rewriter& rewriter, Node& value);

/// `clone(weight, channels_last)`: with the strides of that layout also where sizes of 1 leave a choice.
Node& channels_last_weight(Rewriter& rewriter, Node& weight);

/// True for `contiguous(x, channels_last)`.
bool is_channels_last_call(const Node& node);

/// True for `contiguous(x)`.
bool is_plain_contiguous(const Node& node);

/// Weights that are cloned, transposed or otherwise prepared for packing become attributes: nothing of it is left for
/// each run. Returns how many.
std::size_t prepare_weights(GraphModule& module);

}  // namespace fx::rules
