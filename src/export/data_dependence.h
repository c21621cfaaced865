// Calls whose results have sizes, or are numbers, that the data decide and not the sizes, and which are no source that
// an archive has a symbol for (data_sizes.h): a truth value of whole tensors, `nonzero` in a branch of cond.
//
// Cost: linear in the graphs. Thread-safety: none, as the graphs.
#pragma once

#include <string>

#include <fxgraph/export/value_shapes.h>
#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

/// The calls of `graph` and of the graphs nested in it (submodules of `module`) that depend on data as their operators
/// say, before anything runs, and cannot be sources: "aten::equal at %equal, …". Empty when there is none.
std::string calls_of_data(const Graph& graph, const GraphModule& module);

/// Those of `graph` that do as the values that they had say, and are no sources.
std::string calls_of_data(const Graph& graph, const ProgramValues& shapes);

}  // namespace fx::pt2
