// Graphs in short, for tests that write and read many of them.
#pragma once

#include <string>

#include "ir/graph.h"

namespace fx::testing {

/// A graph from statements, one a line: `name = target(args)` as in FX text, `name = get_attr[target=path]()`, `return
/// value`. `inputs` are the placeholders, separated by spaces.
Graph graph_of(const std::string& body, const std::string& inputs = "x");

/// The calls of a graph and what it returns, one a line: `add = aten::add.Tensor(x, y, alpha=2)`.
std::string calls_of(const Graph& graph);

}  // namespace fx::testing
