// A quick primer on graphs: what goes in, what is computed, what comes out.
//
//   class MyModule(torch.nn.Module):
//       def __init__(self):
//           super().__init__()
//           self.param = torch.nn.Parameter(torch.rand(3, 4))
//           self.linear = torch.nn.Linear(4, 5)
//
//       def forward(self, x):
//           return torch.topk(torch.sum(
//               self.linear(x + self.linear.weight).relu(), dim=-1), 3)
//
//   m = MyModule()
//   gm = torch.fx.symbolic_trace(m)
//   gm.graph.print_tabular()
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

// [module]
struct MyModule : torch::nn::Module {
  torch::Tensor param = register_parameter("param", torch::rand({3, 4}));
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 5));

  std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    return torch::topk(torch::sum(linear(x + linear->weight).relu(), -1), 3);
  }
};
// [end]

int main() {
  // [trace]
  auto gm = fx::symbolic_trace(std::make_shared<MyModule>());
  gm->graph().print_tabular();
  // [end]

  std::cout << "\ninputs:";
  for (const fx::Node* input : gm->graph().placeholders()) std::cout << ' ' << *input;
  std::cout << "\noperations:";
  for (const fx::Node& node : gm->graph().nodes()) {
    if (!node.is(fx::Op::placeholder) && !node.is(fx::Op::output)) std::cout << ' ' << node;
  }
  std::cout << "\nresult: " << fx::to_string(gm->graph().output_node()->arg(0)) << '\n';

  // The table's lines, in torch.fx's order; the tuple that topk returns is spelt out.
  const fx::Graph& graph = gm->graph();
  TORCH_CHECK(graph.placeholders().size() == 1);
  TORCH_CHECK(graph.find_nodes(fx::Op::call_module, "linear").size() == 1);
  TORCH_CHECK(graph.find_nodes(fx::Op::get_attr, "linear.weight").size() == 1);
  TORCH_CHECK(graph.find_nodes(fx::Op::call_function, "aten::topk").size() == 1);
  TORCH_CHECK(!gm->find_attribute("param").defined(), "what forward does not use is not in the graph");
  return 0;
}
