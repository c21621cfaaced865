// OwningModule: a torch::nn::Module whose forward is a Graph over its own tree, FX's Graph.owning_module. GraphModule
// is the one that users make; plans run any.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include <fxgraph/ir/graph.h>

namespace fx {

class OwningModule : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  virtual const Graph& graph() const = 0;
  /// Goes up when another graph takes the place of this one: revisions of two graphs say nothing of each other.
  std::uint64_t graph_generation() const { return generation_; }

 protected:
  void graph_was_replaced() { ++generation_; }

 private:
  std::uint64_t generation_ = 0;
};

}  // namespace fx
