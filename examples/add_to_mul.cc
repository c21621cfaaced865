// Every torch.add becomes a torch.mul, three ways.
//
//   class M(torch.nn.Module):
//       def forward(self, x, y):
//           return torch.add(x, y)
//
//   def transform(m: torch.nn.Module, tracer_class : type = fx.Tracer) -> torch.nn.Module:
//       graph : fx.Graph = tracer_class().trace(m)
//       for node in graph.nodes:
//           if node.op == 'call_function':
//               if node.target == torch.add:
//                   node.target = torch.mul
//       graph.lint()
//       return fx.GraphModule(m, graph)
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

struct M : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x, torch::Tensor y) { return torch::add(x, y); }
};

// 1. Trace, edit, wrap up: the transform as FX's documentation writes it.
// [transform]
std::shared_ptr<fx::GraphModule> transform(std::shared_ptr<M> m) {
  fx::Graph graph = fx::Tracer().trace(m).graph;
  for (fx::Node& node : graph.nodes()) {
    if (node.is_call("aten::add.Tensor")) node.set_target("aten::mul.Tensor");
  }
  graph.lint();  // checks that the graph is well formed
  return std::make_shared<fx::GraphModule>(*m, std::move(graph));
}
// [end]

// 2. The same in place.
std::shared_ptr<fx::GraphModule> edited(std::shared_ptr<M> m) {
  // [edit]
  auto gm = fx::symbolic_trace(m);
  for (fx::Node& node : gm->graph().nodes()) {
    if (node.is_call("aten::add.Tensor")) node.set_target("aten::mul.Tensor");
  }
  gm->graph().lint();
  gm->recompile();
  // [end]
  return gm;
}

// 3. As a pattern and its replacement: two ordinary functions.
std::shared_ptr<fx::GraphModule> replaced(std::shared_ptr<M> m) {
  // [replace]
  auto gm = fx::symbolic_trace(m);
  fx::replace_pattern(
      *gm, [](torch::Tensor x, torch::Tensor y) { return torch::add(x, y); },
      [](torch::Tensor x, torch::Tensor y) { return torch::mul(x, y); });
  // [end]
  return gm;
}

int main() {
  auto m = std::make_shared<M>();
  const torch::Tensor x = torch::tensor({2}), y = torch::tensor({3});
  TORCH_CHECK(m->forward(x, y).item<int>() == 5);
  for (const auto& gm : {transform(m), edited(m), replaced(m)}) {
    gm->graph().print_tabular();
    TORCH_CHECK(gm->forward(x, y).item<int>() == 6);
  }
  return 0;
}
