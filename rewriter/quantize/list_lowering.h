// Calls that make lists of tensors, in the reference form: chunk, split, unbind of a quantized value.
#pragma once

#include <fxgraph/ir/graph.h>

namespace fx::quantize {

/// Where all elements that are taken from such a list are quantized again in the input's range, takes them from a list
/// of the quantized value. Linear in the graph.
void lower_lists(Graph& graph);

}  // namespace fx::quantize
