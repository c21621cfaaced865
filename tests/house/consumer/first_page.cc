// The README's first page, with everything in one include.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 8, 3));
  torch::nn::BatchNorm2d bn = register_module("bn", torch::nn::BatchNorm2d(8));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(8, 10));
  torch::Tensor forward(torch::Tensor x) { return fc(torch::relu(bn(conv(x))).mean({2, 3})); }
};

int main() {
  const auto net = std::make_shared<Net>();
  net->eval();
  const torch::Tensor x = torch::rand({1, 3, 32, 32});
  const auto gm = fx::symbolic_trace(net, {x});
  gm->save("net.pt");
  const auto again = fx::load("net.pt");
  std::cout << gm->code();
  return torch::equal(gm->forward(x), net->forward(x)) && torch::equal(again->forward(x), net->forward(x)) ? 0 : 1;
}
