// OwningModule: a torch::nn::Module whose forward is a Graph over its own tree, FX's Graph.owning_module. GraphModule
// is the one that users make; plans run any.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include <fxgraph/ir/graph.h>

namespace fx {

/// A module that runs a graph over its own parameters and submodules.
class OwningModule : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  /// What it runs.
  virtual const Graph& graph() const = 0;
  /// Goes up when another graph takes the place of this one: revisions of two graphs say nothing of each other.
  std::uint64_t graph_generation() const { return generation_; }

 protected:
  /// To be called when another graph takes the place of this one.
  void graph_was_replaced() { ++generation_; }

 private:
  std::uint64_t generation_ = 0;
};

}  // namespace fx
