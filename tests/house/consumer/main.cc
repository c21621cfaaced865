// A stranger's first program: only the installed package, both ways of including.
#include <fxgraph/fx.h>

#include <fxgraph/ir/graph.h>

int main() {
  fx::Graph graph;
  fx::Node& x = graph.placeholder("x");
  graph.output(graph.call_function("aten::relu", {x}));
  graph.lint();
  graph.print_tabular();
}
