// What a traced program takes from the element type and the layout in memory of its inputs.
//
// `x.scalar_type() == kFloat ? … : …`, `torch::ones({3}, x.options())`: C++ hands out types as plain values, so the
// graph has those of the example. The program is run once more, on inputs, floating-point parameters and buffers of
// other types. Where it then does something else the graph holds for the type of the example, and asserts that.
// Operators that cannot run on others say so themselves. How values lie in memory is seen to be asked
// (`x.stride(0)`): then inputs lie as the examples do.
//
// Inputs alone of another type come behind that: where the program casts them to the type of its weights it goes on.
// Types besides that programs ask for by name (float, half, bytes, bool, int64) are tried as far as the program is
// taking up its inputs: `x.is_floating_point() ? x : x / 255.0`, `mask.scalar_type() == kBool`.
//
// Cost: one run of the program, without results; where there are weights another, which mostly ends where the first is
// used; the beginning of a run for each type besides; a run for each type where the first was not the same.
#pragma once

#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/probe.h>

namespace fx::internal {

/// Writes the assertions, if there is need for one, after the placeholders. `stand_ins` are like the examples.
void assert_types(Graph& graph, const ProbedProgram& program, const std::vector<BoundTensor>& inputs,
                  const std::vector<at::Tensor>& stand_ins);

}  // namespace fx::internal
