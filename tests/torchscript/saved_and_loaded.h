// A module written as TorchScript and read again by LibTorch alone.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <sstream>

#include <fxgraph/torchscript/export.h>

namespace fx::testing {

inline torch::jit::Module saved_and_loaded(const torch::jit::Module& module) {
  std::stringstream file;
  module.save(file);
  return torch::jit::load(file);
}
inline torch::jit::Module saved_and_loaded(const GraphModule& module) {
  return saved_and_loaded(to_torchscript(module));
}

}  // namespace fx::testing
