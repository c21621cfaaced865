// The bodies of C++ torch::nn modules: what their forward computes, as a Graph over their own tensors.
#pragma once

#include <torch/nn/module.h>

#include <optional>

#include <fxgraph/ir/graph.h>

namespace fx::internal {

/// Each returns nothing when the module, as it is configured, does more than a body can say (training statistics,
/// padding modes).
using NnBody = std::optional<Graph> (*)(const torch::nn::Module& module);

NnBody conv_body(int dims);
NnBody conv_transpose_body(int dims);
/// In the mode that the module is in, or in evaluation whichever that is.
NnBody batch_norm_body(int dims, bool evaluated = false);
NnBody max_pool_body(int dims);
std::optional<Graph> avg_pool2d_body(const torch::nn::Module& module);
std::optional<Graph> adaptive_avg_pool2d_body(const torch::nn::Module& module);
std::optional<Graph> linear_body(const torch::nn::Module& module);
std::optional<Graph> relu_body(const torch::nn::Module& module);
std::optional<Graph> relu6_body(const torch::nn::Module& module);
std::optional<Graph> sigmoid_body(const torch::nn::Module& module);
std::optional<Graph> tanh_body(const torch::nn::Module& module);
std::optional<Graph> silu_body(const torch::nn::Module& module);
std::optional<Graph> identity_body(const torch::nn::Module& module);
std::optional<Graph> flatten_body(const torch::nn::Module& module);
std::optional<Graph> layer_norm_body(const torch::nn::Module& module);
std::optional<Graph> group_norm_body(const torch::nn::Module& module);
std::optional<Graph> embedding_body(const torch::nn::Module& module);

}  // namespace fx::internal
