// What TorchScript would not keep of a program.
//
// TorchScript knows of aliases what its schemas say, and drops what nothing else needs: calls that draw random numbers,
// and writes to what it takes for a tensor of its own. So programs come back changed: those are refused before.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>

namespace fx::internal {

/// The first node whose effect TorchScript would drop, and why; nothing when all are kept. O(nodes).
std::optional<std::pair<const Node*, std::string>> find_dropped_effect(const Graph& graph,
                                                                       const ModuleInfo& modules = {});

}  // namespace fx::internal
