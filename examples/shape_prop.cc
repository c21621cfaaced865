// The shape of every value, by running the graph on example inputs.
//
//   from torch.fx.passes.shape_prop import ShapeProp
//   ShapeProp(traced).propagate(torch.rand(2, 3, 8, 8))
//   for node in traced.graph.nodes:
//       print(node.name, node.meta['tensor_meta'].dtype, node.meta['tensor_meta'].shape)
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::nn::Sequential net(torch::nn::Conv2d(3, 8, 3), torch::nn::ReLU(), torch::nn::Flatten(),
                            torch::nn::Linear(8 * 6 * 6, 10));
  auto gm = fx::symbolic_trace(net);
  // [shapes]
  fx::Shapes shapes = fx::propagate_shapes(*gm, {torch::rand({2, 3, 8, 8})});
  for (const fx::Node& node : gm->graph().nodes()) {
    if (const fx::TensorInfo* info = shapes[node].tensor()) std::cout << node << ": " << fx::to_string(*info) << '\n';
  }
  // [end]
  TORCH_CHECK(shapes[*gm->graph().output_node()].tensor()->sizes == std::vector<std::int64_t>({2, 10}));
  return 0;
}
