// Lowering: the reference form becomes calls of an engine's kernels, by rules that the backend's table makes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/quantize/config.h>
#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

/// What stayed in the reference form, and why: the float program's node and the reason.
using Unlowered = std::vector<std::pair<std::string, std::string>>;

/// Applies the rules that the table makes, each a pattern of the reference form and the kernel that does it. Packed
/// weights become attributes. Every kernel runs once, on the sizes in `values` (by the float program's names), before
/// it is taken. Returns the places that the engine refused. Afterwards as tidy().
Unlowered lower(GraphModule& reference, QuantBackend backend, const Trial::Values& values);

/// Removes from a converted program what nothing uses, and names nodes after the float values that they stand for.
void tidy(GraphModule& module);

}  // namespace fx::quantize
