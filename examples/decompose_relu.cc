// relu is decomposed into (x > 0) * x, by a rule that reads as ordinary C++.
//
//   def relu_decomposition(x):
//       return (x > 0) * x
//
//   decomposition_rules = {}
//   decomposition_rules[F.relu] = relu_decomposition
//
//   def decompose(model: torch.nn.Module, tracer_class : type = fx.Tracer) -> torch.nn.Module:
//       graph : fx.Graph = tracer_class().trace(model)
//       new_graph = fx.Graph()
//       env = {}
//       tracer = torch.fx.proxy.GraphAppendingTracer(new_graph)
//       for node in graph.nodes:
//           if node.op == 'call_function' and node.target in decomposition_rules:
//               proxy_args = [fx.Proxy(env[x.name], tracer) if isinstance(x, fx.Node) else x for x in node.args]
//               output_proxy = decomposition_rules[node.target](*proxy_args)
//               new_node = output_proxy.node
//               env[node.name] = new_node
//           else:
//               new_node = new_graph.node_copy(node, lambda x: env[x.name])
//               env[node.name] = new_node
//       return fx.GraphModule(model, new_graph)
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

struct M : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 10));
  torch::Tensor forward(torch::Tensor x) { return torch::relu(linear(x)); }
};

torch::Tensor relu_decomposition(torch::Tensor x) { return (x > 0) * x; }

// By hand, as above. fx::decompose does it and more.
std::shared_ptr<fx::GraphModule> by_hand(const fx::GraphModule& model) {
  fx::Graph new_graph;
  fx::NodeMap<fx::Argument> env(model.graph());
  fx::GraphAppendingTracer tracer(new_graph);
  for (const fx::Node& node : model.graph().nodes()) {
    if (node.is_call("aten::relu")) {
      torch::Tensor x = tracer.proxy(env[node.arg(0).node()].node());
      env[node] = tracer.node(relu_decomposition(x));
    } else {
      env[node] = new_graph.node_copy(node, [&](fx::Node& input) { return env[input]; });
    }
  }
  return std::make_shared<fx::GraphModule>(model, std::move(new_graph));
}

int main() {
  auto m = std::make_shared<M>();
  auto gm = fx::symbolic_trace(m);
  // [decompose]
  fx::Decompositions table;
  table["aten::relu"] = [](torch::Tensor x) { return (x > 0) * x; };
  auto decomposed = fx::decompose(*gm, table);
  std::cout << decomposed->code();
  // [end]

  const torch::Tensor x = torch::randn({4, 3});
  for (const auto& each : {decomposed, by_hand(*gm)}) {
    TORCH_CHECK(each->graph().find_nodes(fx::Op::call_function, "aten::relu").empty());
    TORCH_CHECK(torch::equal(each->forward(x), m->forward(x)));
  }
  return 0;
}
