// Assertions on sizes inside of a program, in words of its inputs: `pad.size()[1] <= 7` is `x[2] <= 28`.
#pragma once

#include <cstddef>
#include <vector>

#include <fxgraph/contract/symbolic_shapes.h>

namespace fx {

/// Says what assertions of `graph` ask of the sizes that follow from those of its tensors, which have the forms of
/// `inputs`: one for each placeholder, a tensor or a list of such; what is neither stays as it is. That form is
/// asserted then, too. What follows from the ranks and from assertions before is erased. What hangs on data, or on
/// operators without a row, stays. Returns how many were changed. Cost: as SymbolicShapes.
std::size_t restate_assertions(Graph& graph, std::vector<AbstractValue> inputs, ShapeSources sources);

}  // namespace fx
