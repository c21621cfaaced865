// What a traced program takes from the element type and the layout in memory of its inputs.
//
// `x.scalar_type() == kFloat ? … : …`, `torch::ones({3}, x.options())`, `x.stride(0)`: C++ hands out types and strides
// as plain values, so the graph has those of the example. The program is run once more, on floating-point inputs,
// parameters and buffers of another type and on inputs that are not contiguous. Where it then does something else the
// graph holds for the type, or the layout, of the example, and asserts that. Operators that cannot run on others say so
// themselves.
//
// Cost: one run of the program, without results; up to three where it is not the same.
#pragma once

#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/sample.h>

namespace fx::internal {

/// Writes the assertions, if there is need for one, after the placeholders. `stand_ins` are like the examples.
void assert_types(Graph& graph, const SampledProgram& program, const std::vector<BoundTensor>& inputs,
                  const std::vector<at::Tensor>& stand_ins);

}  // namespace fx::internal
