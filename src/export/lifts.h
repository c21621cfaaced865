// Lifts: where run_decompositions() spelled an operator of ATen out in core ATen, that operator again, so that
// patterns, rules and reports see one spelling: `convolution` is `conv2d`, `_native_batch_norm_legit_no_training` with
// one result in use is `batch_norm`, `addmm` with a transposed weight between two views is `linear`, `bmm` of expanded
// views is `matmul`. A lift computes the same with the same kernels, or is not made.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/export/graph_reader.h>

namespace fx::pt2 {

/// Makes the lifted call for the node that `reader` is at, binds its results, and returns true; does nothing and
/// returns false when no lift fits.
bool lift(GraphReader& reader, const std::string& target, const std::vector<NamedValue>& inputs);

/// Removes the calls that lifts left without a use.
void remove_left_over(Graph& graph);

}  // namespace fx::pt2
