// One TorchScript method that does what one of two does, as the module's `training` says.
#pragma once

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace fx::internal {

/// `if self.training: … else: …`. Null when the two take or return something else.
std::shared_ptr<torch::jit::Graph> in_both_modes(const torch::jit::Graph& training,
                                                 const torch::jit::Graph& evaluation);

}  // namespace fx::internal
