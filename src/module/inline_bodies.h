// Calls of modules that TorchScript cannot make, written out as the operators that they were when traced.
#pragma once

#include <optional>

#include <fxgraph/module/graph_module.h>

namespace fx::internal {

/// A copy of the module's graph with such calls inlined (module/traced_body.h); nothing when there are none. Throws
/// Error(unsupported) naming the call when its module is in another mode than it was traced in, or when the call's
/// inputs were changed so that what was traced does not fit. Linear in the nodes.
std::optional<Graph> inline_traced_bodies(const GraphModule& module);

}  // namespace fx::internal
