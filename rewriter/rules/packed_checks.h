// Assertions on what enters kernels with packed weights, which check nothing of it: XNNPACK's of LibTorch 1.13 read
// memory that is not theirs when channels or features are too few and end the process when an image is smaller than the
// kernel; oneDNN's return nothing where conv2d refuses.
//
// Only what the program does not ensure is asserted (size_bounds.h): as a rule that is once, where images come in.
#pragma once

#include <cstddef>

#include <fxgraph/module/graph_module.h>

namespace fx::rules {

/// Puts assertions before the calls of packed kernels where an input could have other sizes than they take. Returns how
/// many.
std::size_t assert_packed_inputs(GraphModule& module);

/// Takes these assertions out again, for operators check for themselves. Does nothing while packed calls are left.
void drop_packed_assertions(GraphModule& module);

}  // namespace fx::rules
