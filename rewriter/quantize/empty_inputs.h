// Inputs without elements, which operators on floats take: LibTorch's quantized embeddings read memory that is not
// theirs, and its linear layers give a result of two dimensions whatever they were given.
//
// Cost: linear in the graph. Thread-safety: none.
#pragma once

#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

/// Asserts at the inputs of a converted program that they have elements, where it has such kernels. `values` are those
/// of the float program, by name: an input that had none in the example is left alone.
void refuse_empty_inputs(GraphModule& converted, const Trial::Values& values);

}  // namespace fx::quantize
