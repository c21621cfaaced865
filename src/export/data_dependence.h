// Calls whose results have sizes, or are numbers, that the data decide and not the sizes: `nonzero`, `item`, indexing
// by a mask. An archive describes the shape of every value by the sizes of the inputs, which has no words for these.
//
// Cost: linear in the graphs. Thread-safety: none, as the graphs.
#pragma once

#include <string>

#include <fxgraph/export/value_shapes.h>
#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

/// The calls of `graph` and of the graphs nested in it (submodules of `module`) that depend on data as their operators
/// say, before anything runs: "aten::item at %item, …". Empty when there is none.
std::string calls_of_data(const Graph& graph, const GraphModule& module);

/// Those of `graph` that do as the values that they had say.
std::string calls_of_data(const Graph& graph, const ValueShapes& shapes);

}  // namespace fx::pt2
