// Modules of torch.nn that were scripted and branch on what they are given: LSTM, GRU, InstanceNorm.
//
// The importer keeps them as calls, since their forward asks for the number of dimensions and for packed sequences. An
// example settles both, so they can be written out as the operators that they come down to.
#pragma once

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/inline_modules.h>

namespace fx::internal {

/// Modules that were traced and have no body of their own, such as an LSTM, become the operators that they were when
/// they were traced. All stay as they are when that holds no more for one of them: it is in another mode, or its inputs
/// are others.
void write_out_traced_leaves(GraphModule& module);

/// Whether `module` calls any scripted ones.
bool has_scripted_leaves(const GraphModule& module);

/// The bodies that such leaves of `module` have in evaluation mode for inputs of the ranks that `shapes` says, for
/// inline_modules(); none for leaves in training, for those that are called in several ways, and for what `shapes` does
/// not know.
ModuleBodies scripted_bodies(const GraphModule& module, const Shapes& shapes);

}  // namespace fx::internal
