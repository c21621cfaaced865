// Python source from a graph, as torch.fx generates it: one statement per node, values released after their last use.
#pragma once

#include <string>

#include "ir/graph.h"

namespace fx {

/// The method `def forward(self, …):` of the graph, closed by a newline.
/// Infix operators, in-place operators and attribute reads print as Python writes them; ATen calls as
/// `torch.ops.aten.…`. Nodes print in list order; each statement is followed by `;  x = y = None` for the values that
/// it used last.
std::string python_code(const Graph& graph);

/// A whole module: the imports that the generated code needs and `class <name>(torch.nn.Module)` with that method.
std::string python_module(const Graph& graph, const std::string& name = "Module");

}  // namespace fx
