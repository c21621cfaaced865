// TorchScript out: a GraphModule becomes a torch::jit::Module that any LibTorch and Python load.
//
// The module tree is kept: parameters and buffers under their paths, leaves as classes of their torch.nn names, so that
// loading the file again sees leaves again. Tensors are shared with the GraphModule. Dropout and leaves with a body for
// each mode follow `training`; what others do is written as it is in their mode. Where that matters, and where the mode
// of the GraphModule is fixed, the root has an attribute `_fxgraph_mode`, for which from_torchscript() refuses the
// other mode. Whoever else reads the file leaves it alone.
#pragma once

#include <string>

#include <fxgraph/module/graph_module.h>

namespace torch::jit {
struct Module;
}

namespace fx {

/// Throws Error(unsupported), naming the node, for what TorchScript cannot say.
torch::jit::Module to_torchscript(const GraphModule& module);

/// Writes what the name's ending says: what torch.export.load reads for `.pt2` (export/save.h), text, which leaves
/// weights out, for `.fx` and `.txt`, otherwise TorchScript. Writes `path`, beside it first and then renamed: there is
/// never half a file. Throws Error(io) when it cannot be written.
void save(const GraphModule& module, const std::string& path);

}  // namespace fx
