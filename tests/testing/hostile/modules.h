// Modules of torch.nn that hostile programs call.
// Internal to testing/hostile.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/testing/hostile/tensors.h>

namespace fx::hostile {

/// A graph of one input, with a number of its own: one to call, or the branch of a cond.
std::shared_ptr<GraphModule> draw_nested(Random& random);

/// A module for tensors whose dimensions are of size `n`; training or evaluating.
std::shared_ptr<torch::nn::Module> draw_module(Random& random, std::int64_t n);

/// What such a module takes; nothing when it takes everything.
std::optional<TensorForm> input_form(const torch::nn::Module& module, std::int64_t n);

/// Calls a module that draw_module made.
at::Tensor call_module(torch::nn::Module& module, const at::Tensor& input);

}  // namespace fx::hostile
