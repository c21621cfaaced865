// The graph alone: no header and no library of LibTorch.
#include <fxgraph/ir/graph.h>
#include <fxgraph/rewriter/replace_pattern.h>

int main() {
  fx::Graph graph;
  fx::Node& x = graph.placeholder("x");
  graph.output(graph.call_function("aten::relu", {graph.call_function("aten::relu", {x})}));
  const fx::RewriteReport report = fx::replace_pattern(graph, "aten::relu(aten::relu(x))", "aten::relu(x)");
  graph.lint();
  graph.print_tabular();
  return report.applied == 1 ? 0 : 1;
}
