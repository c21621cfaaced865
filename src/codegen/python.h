// Python source from a graph, as torch.fx generates it: one statement per node, values released after their last use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <fxgraph/ir/graph.h>

namespace fx {

/// The method `def forward(self, …):` of the graph, closed by a newline.
/// Infix operators, in-place operators and attribute reads print as Python writes them; ATen calls as
/// `torch.ops.aten.…`. Nodes print in list order; each statement is followed by `;  x = y = None` for the values that
/// it used last.
std::string python_code(const Graph& graph);

/// A whole module: the imports that the generated code needs and `class <name>(torch.nn.Module)` with that method.
/// Annotations of types that no import of torch or typing gives are left out. Operators are called without overload
/// (`torch.ops.aten.add`) where the arguments tell it: torch.jit.script of 1.13 takes no others.
std::string python_module(const Graph& graph, const std::string& name = "Module");

/// What generated Python calls an attribute: `self.layer1`, with getattr(…, "0") for atoms that Python does not take
/// after a dot.
std::string python_attribute(std::string_view path);
/// A call of `operator.add`, `operator.getitem`, … as Python writes it, `a + b`; nothing for any other call.
std::optional<std::string> python_infix(const Node& node);

}  // namespace fx
