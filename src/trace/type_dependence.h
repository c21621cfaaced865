// What a traced program takes from the element type and the layout in memory of its inputs.
//
// `x.scalar_type() == kFloat ? … : …`, `torch::ones({3}, x.options())`, `x.stride(0)`: C++ hands out types and strides
// as plain values, so the graph has those of the example. The program is run once more, on inputs of other types, on
// floating-point parameters and buffers of other types and on inputs that are not contiguous. Where it then does
// something else the graph holds for the type, or the layout, of the example, and asserts that. Operators that cannot
// run on others say so themselves.
//
// Inputs alone of another type come behind that: where the program casts them to the type of its weights it goes on.
// Types besides that programs ask for by name (float, half, bytes, bool, int64) are tried as far as the program is
// taking up its inputs: `x.is_floating_point() ? x : x / 255.0`, `mask.scalar_type() == kBool`.
//
// Cost: one run of the program, without results; where there are weights another, which mostly ends where the first is
// used; the beginning of a run for each type besides; a run for each type and one for the layout where the first was
// not the same, and up to two where it asks for layouts.
#pragma once

#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/probe.h>

namespace fx::internal {

/// Writes the assertions, if there is need for one, after the placeholders. `stand_ins` are like the examples. Of what
/// `has_been_seen` no more is looked at than what one sample of another type and layout did not show.
void assert_types(Graph& graph, const ProbedProgram& program, const std::vector<BoundTensor>& inputs,
                  const std::vector<at::Tensor>& stand_ins, bool has_been_seen);

}  // namespace fx::internal
