#include <fxgraph/module/state_keeper.h>

#include <ATen/ATen.h>

#include <fxgraph/module/module_effects.h>

namespace fx {

StateKeeper::StateKeeper(const GraphModule& module) {
  const ModuleEffects effects = module_effects(module);
  bool writes = false;
  for (const Node& node : module.graph().nodes()) writes = writes || effects_of(node, effects).writes;
  if (!writes) return;
  const at::NoGradGuard no_grad;
  for (const at::Tensor& tensor : module.parameters()) saved_.emplace_back(tensor, tensor.clone());
  for (const at::Tensor& tensor : module.buffers()) saved_.emplace_back(tensor, tensor.clone());
}

StateKeeper::~StateKeeper() {
  const at::NoGradGuard no_grad;
  for (auto& [tensor, value] : saved_) tensor.copy_(value);
}

}  // namespace fx
