// What rules that lower to packed kernels share.
#pragma once

#include <cstddef>
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

/// True for a convolution with packed weights, for one of XNNPACK's, and for a linear layer of its.
/// @{
bool is_packed_convolution(const Node& node);
bool is_xnnpack_convolution(const Node& node);
bool is_xnnpack_linear(const Node& node);
/// @}

/// True for a call that XNNPACK computes, in part at least: it keeps state in what it packed.
bool uses_xnnpack(const Node& node);

/// [n, c, h, w] as [n, h, w, c], and back: views.
Node& as_pixels(Rewriter& rewriter, Node& image);
Node& as_image(Rewriter& rewriter, Node& pixels);

/// What oneDNN's convolution reads: `contiguous(image, channels_last)`, with strides that follow from its sizes, in
/// dimensions of one element as well. Of a batch of one that is a view of something larger, which counts as contiguous,
/// it computes anything.
Node& onednn_image(Rewriter& rewriter, Node& image);

/// Packs a linear layer for XNNPACK, which takes no weights that a gradient is asked of.
Node& xnnpack_linear_weights(Rewriter& rewriter, Node& weight, const Argument& bias, const Argument& least = {},
                             const Argument& most = {});

/// `contiguous(bias)`, or None: oneDNN of later releases takes a vector for contiguous whatever its strides.
Argument onednn_bias(Rewriter& rewriter, const Argument& bias);

/// The calls that give an image strides of its own go where it has them: where it comes from an operator that lays its
/// result out, or, with `of_inputs`, from an input. Returns how often.
std::size_t drop_own_strides(const GraphModule& module, Rewriter& rewriter, bool of_inputs);

/// True for a tensor of that type on the CPU.
bool is_on_cpu(const TensorFacts& value, DType type);
/// True for float32 on the CPU, and for bfloat16 where oneDNN multiplies that on this processor.
bool has_packed_kernels(const TensorFacts& value);

/// A copy of the value where XNNPACK's operators put their results. What lies elsewhere they copy there first.
at::Tensor as_in_island(const at::Tensor& value);

/// What is computed from attributes alone, and goes into packing, addmm or addcmul alone, becomes an attribute, and so
/// do copies in another type: nothing of it is left for each run. Returns how many values.
std::size_t prepare_weights(GraphModule& module);

}  // namespace fx::rules
