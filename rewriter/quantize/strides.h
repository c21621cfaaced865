// Strides: layers of images make channels-last results once they are quantized. Programs that can tell get the strides
// that they had.
//
// Who can tell: a view, which then cannot be made; a write through a reshape that was a view and would be a copy; and
// what reads memory by strides of its own.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

/// Makes the views of a flat program reshapes, but for those that something writes through. Throws Error(unsupported)
/// for memory that is read by strides of the program's own and is not contiguous.
void ask_for_no_strides(GraphModule& flat, const std::vector<c10::IValue>& example);

/// Makes what a converted program reads back as floats contiguous where the float program's value was, if the program
/// writes to values or reads their strides. `values` are those of the float program, by name.
void restore_strides(GraphModule& converted, const Trial::Values& values);

}  // namespace fx::quantize
