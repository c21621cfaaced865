// Graphs in short, for tests that write and read many of them.
#pragma once

#include <string>

#include <fxgraph/ir/graph.h>

namespace fx::testing {

/// A graph from statements, one a line: `name = operator(%x, [1, 2], alpha=2)`, `name = call_method[target=relu](%x)`
/// (or another kind of node, as in FX text), `return value`. `inputs` are the placeholders, separated by spaces.
Graph graph_of(const std::string& body, const std::string& inputs = "x");

/// The calls of a graph and what it returns, one a line: `add = aten::add.Tensor(x, y, alpha=2)`.
std::string calls_of(const Graph& graph);

}  // namespace fx::testing
