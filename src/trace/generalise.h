// Generalising: a trace made at the sizes of its examples becomes one that holds for others.
//
// C++ hands out sizes as plain numbers, so the first trace holds them as numbers. The program is run again at other
// sizes (trace/size_search.h); where it does the same, each number of the graph that has changed is explained as an
// expression of sizes (trace/size_terms.h) and written so (trace/size_writer.h). A dimension on which the program
// depends in another way keeps its size, which the graph asserts.
//
// Leaf modules have been raised before: what they do inside is theirs. Cost: as a rule two to four further runs of the
// program, none of which builds more than a list of its calls.
#pragma once

#include <vector>

#include <fxgraph/trace/sample.h>
#include <fxgraph/trace/sizes.h>

namespace fx::internal {

void generalise(Graph& graph, const SampledProgram& program, const std::vector<BoundTensor>& inputs, const Sizes& sizes);

}  // namespace fx::internal
