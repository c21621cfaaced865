// OwningModule: a torch::nn::Module whose forward is a Graph over its own tree, FX's Graph.owning_module. GraphModule
// is the one that users make; plans run any.
#pragma once

#include <fxgraph/ir/graph.h>
#include <torch/nn/module.h>

namespace fx {

class OwningModule : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  virtual const Graph& graph() const = 0;
};

}  // namespace fx
