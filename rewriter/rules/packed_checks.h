// Assertions on what enters kernels with packed weights, which check nothing of it: XNNPACK's of LibTorch 1.13 read
// memory that is not theirs when channels or features are too few and end the process when an image is smaller than the
// kernel; oneDNN's return nothing where conv2d refuses.
//
// What they take is what the rows of the operators say that they were packed from; only what does not follow from the
// program is asserted (contract/symbolic_shapes.h): as a rule that is once, where images come in.
#pragma once

#include <cstddef>

#include <fxgraph/module/graph_module.h>

namespace fx::rules {

/// Puts assertions before the calls of packed kernels where an input could have other sizes than they take. Returns how
/// many. They stay when the calls become operators again: they say what the program takes.
std::size_t assert_packed_inputs(GraphModule& module);

}  // namespace fx::rules
