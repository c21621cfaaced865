// Lowering: the reference form becomes calls of an engine's kernels, by rules that the backend's table makes.
#pragma once

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/quantize/target_engine.h>
#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

/// Applies the rules that the table makes, each a pattern of the reference form and the kernel that does it. Packed
/// weights become attributes. Every kernel runs once, on the sizes in `values` (by the float program's names), before
/// it is taken. `target` notes the places that were refused. Afterwards as tidy().
void lower(GraphModule& reference, TargetEngine& target, const Trial::Values& values);

/// Removes from a converted program what nothing uses, and names nodes after the float values that they stand for.
void tidy(GraphModule& module);

}  // namespace fx::quantize
