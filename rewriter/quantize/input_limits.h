// What operators on floats take and LibTorch's kernels do not, without saying so. Of tensors without elements quantized
// embeddings read memory that is not theirs, and linear layers give a result of two dimensions whatever they were
// given. Of one element norms make what rounding left of it, where the mean of one number is that number.
//
// Cost: linear in the graph. Thread-safety: none.
#pragma once

#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

/// Asserts at the inputs of a converted program that they have elements, and before norms that these have more than one
/// each, where it has such kernels. `values` are those of the float program, by name: an input that had no elements in
/// the example is left alone.
void assert_input_limits(GraphModule& converted, const Trial::Values& values);

/// How many groups each image has in the norm that `kernel` is: -1 for as many as there are channels. Nothing for other
/// kernels.
std::optional<std::int64_t> groups_of_norm(const Node& kernel);

}  // namespace fx::quantize
