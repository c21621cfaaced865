// What a node names of its module.
#pragma once

#include <fxgraph/module/graph_module.h>

namespace fx {

/// The tensor or module that a get_attr or call_module names: graphs that `cond` takes and packed weights are modules.
/// Throws Error(not_found) when there is neither.
inline GraphModule::Attribute attribute_of(const GraphModule& module, const Node& node) {
  const std::string path = node.target().str();
  const torch::Tensor tensor = node.is(Op::get_attr) ? module.find_attribute(path) : torch::Tensor();
  if (tensor.defined()) return tensor;
  return module.submodule(path);
}

}  // namespace fx
