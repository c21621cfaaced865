// Programs that cut their batches (GraphModule::set_micro_batches) as TorchScript: the graph is a method, and
// `forward`, in its text, calls it for each part.
#pragma once

#include <fxgraph/run/micro_batches.h>

namespace torch::jit {
struct Module;
}

namespace fx::internal {

/// Adds `forward` to a module whose method kMicroBatchMethod is there, and the attribute kMicroBatches. A result that
/// is neither a tensor nor tuples or a list of them is computed whole.
void add_forward_in_micro_batches(torch::jit::Module& module, const MicroBatches& cut);

/// As it was saved; of size 0 for files that do not cut.
MicroBatches saved_micro_batches(const torch::jit::Module& module);

}  // namespace fx::internal
