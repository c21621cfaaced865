// Dominators, lifetimes, effects, and any Boost.Graph algorithm.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <boost/graph/topological_sort.hpp>
#include <iostream>
#include <iterator>

int main() {
  auto gm = fx::symbolic_trace(
      [](torch::Tensor x) {
        torch::Tensor y = torch::relu(x);
        torch::Tensor z = torch::sigmoid(y) + torch::tanh(y);
        z.mul_(2);
        return z;
      },
      {torch::rand({16, 16})});
  const fx::Graph& graph = gm->graph();
  const fx::Shapes shapes = fx::propagate_shapes(*gm, {torch::rand({16, 16})});
  const fx::Node &relu = *graph.find("relu"), &add = *graph.find("add");
  // [analyse]
  fx::Dominators dom(graph);  // dom.immediate(n), dom.dominates(a, b), dom.common(a, b)
  std::cout << add << " is only reached through " << *dom.immediate(add) << '\n';
  fx::Liveness live(graph, shapes);  // live.interval(n), live.peak().bytes, live.at(n)
  std::cout << live.peak().bytes << " bytes at most, at " << *live.peak().node << '\n';
  fx::Effects effects(graph);  // effects.may_alias(a, b), effects.writes(n), effects.write_between(v, a, b)
  for (const fx::Node& node : graph.nodes()) {
    if (effects.writes(node)) std::cout << node << " writes what others may see\n";
  }
  std::vector<fx::Node*> order;
  boost::topological_sort(fx::view(graph), std::back_inserter(order));  // any Boost.Graph algorithm
  // [end]
  TORCH_CHECK(dom.dominates(relu, add));
  TORCH_CHECK(order.size() == graph.size());
  return 0;
}
