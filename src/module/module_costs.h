// What the modules of a program cost. Internal to src/module.
#pragma once

#include <optional>
#include <string>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx::internal {

/// What the leaf at `path` computes, as an operator and the tensors that it reads; nothing where that is not known.
std::optional<ModuleCall> cost_of_module(const GraphModule& module, const std::string& path);

}  // namespace fx::internal
