// Modules of torch.nn that were scripted and branch on what they are given: LSTM, GRU, InstanceNorm.
//
// The importer keeps them as calls, since their forward asks for the number of dimensions and for packed sequences. An
// example settles both, so they can be written out as the operators that they come down to.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx::quantize {

/// Gives such leaves of `module` the body that they have in evaluation mode for inputs of the example's rank; others,
/// and those that are called in several ways, stay as they are. Costs one run on `example` if there is such a leaf.
void write_out_scripted_leaves(GraphModule& module, const std::vector<c10::IValue>& example);

}  // namespace fx::quantize
