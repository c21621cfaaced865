// Convolutions take the batch-norms that follow them into their weights.
//
//   def fuse(model: torch.nn.Module, inplace=False) -> torch.nn.Module:
//       patterns = [(nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d)]
//       if not inplace:
//           model = copy.deepcopy(model)
//       fx_model = fx.symbolic_trace(model)
//       modules = dict(fx_model.named_modules())
//       new_graph = copy.deepcopy(fx_model.graph)
//       for pattern in patterns:
//           for node in new_graph.nodes:
//               if matches_module_pattern(pattern, node, modules):
//                   if len(node.args[0].users) > 1:  # Output of conv is used by other nodes
//                       continue
//                   conv = modules[node.args[0].target]
//                   bn = modules[node.target]
//                   fused_conv = fuse_conv_bn_eval(conv, bn)
//                   replace_node_module(node.args[0], modules, fused_conv)
//                   node.replace_all_uses_with(node.args[0])
//                   new_graph.erase_node(node)
//       return fx.GraphModule(fx_model, new_graph)
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 8, 3));
  torch::nn::BatchNorm2d bn = register_module("bn", torch::nn::BatchNorm2d(8));
  torch::Tensor forward(torch::Tensor x) { return torch::relu(bn(conv(x))); }
};

torch::nn::Conv2d fuse_conv_bn_eval(const torch::nn::Conv2dImpl& conv, const torch::nn::BatchNorm2dImpl& bn) {
  const torch::NoGradGuard no_grad;
  const auto& options = conv.options;
  torch::nn::Conv2d fused(torch::nn::Conv2dOptions(options.in_channels(), options.out_channels(), options.kernel_size())
                              .stride(options.stride())
                              .padding(options.padding())
                              .dilation(options.dilation())
                              .groups(options.groups()));
  const torch::Tensor scale = bn.weight * torch::rsqrt(bn.running_var + bn.options.eps());
  const torch::Tensor bias = conv.bias.defined() ? conv.bias : torch::zeros_like(bn.running_mean);
  fused->weight.copy_(conv.weight * scale.view({-1, 1, 1, 1}));
  fused->bias.copy_((bias - bn.running_mean) * scale + bn.bias);
  fused->train(conv.is_training());
  return fused;
}

// [fuse]
void fuse(fx::GraphModule& gm) {
  for (fx::Node& node : gm.graph().nodes()) {
    if (!node.is(fx::Op::call_module)) continue;
    auto bn = std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(gm.submodule(node.target().str()));
    fx::Node* before = node.arg(0).node_or_null();
    if (!bn || !before || !before->is(fx::Op::call_module) || before->num_users() > 1) continue;
    auto conv = std::dynamic_pointer_cast<torch::nn::Conv2dImpl>(gm.submodule(before->target().str()));
    if (!conv) continue;
    gm.replace_submodule(before->target().str(), fuse_conv_bn_eval(*conv, *bn).ptr());
    node.replace_all_uses_with(*before);
    gm.graph().erase_node(node);
  }
  gm.delete_all_unused_submodules();
  gm.recompile();
}
// [end]

int main() {
  torch::manual_seed(0);
  auto net = std::make_shared<Net>();
  net->forward(torch::randn({4, 3, 8, 8}));  // statistics to fold
  net->eval();
  auto gm = fx::symbolic_trace(net);
  fuse(*gm);
  std::cout << gm->graph();
  TORCH_CHECK(gm->find_submodule("bn") == nullptr);
  const torch::Tensor x = torch::randn({2, 3, 8, 8});
  TORCH_CHECK(torch::allclose(gm->forward(x), net->forward(x), 1e-4, 1e-5));
  TORCH_CHECK(net->conv->weight.equal(fx::symbolic_trace(net)->attribute("conv.weight")), "the net is as it was");
  return 0;
}
