// A relu after a node; all who used the node use the relu.
//
//   with traced.graph.inserting_after(node):
//       new_node = traced.graph.call_function(torch.relu, args=(node,))
//       node.replace_all_uses_with(new_node)
#include <fxgraph/fx.h>
#include <torch/torch.h>

int main() {
  auto traced = fx::symbolic_trace([](torch::Tensor x, torch::Tensor y) { return torch::add(x, y) * 2; });
  fx::Graph& graph = traced->graph();
  fx::Node& node = *graph.find("add");
  // [insert]
  {
    auto at = graph.inserting_after(node);  // several nodes keep the order they are made in
    fx::Node& relu = graph.call_function("aten::relu", {node});
    node.replace_all_uses_with(relu, fx::except(relu));
  }
  // [end]
  graph.print_tabular();
  graph.lint();
  TORCH_CHECK(traced->forward(torch::tensor({1.0, -3.0}), torch::ones({2})).equal(torch::tensor({4.0, 0.0})));
  return 0;
}
