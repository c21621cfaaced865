// A program that Python exported: loaded, trained further, saved for Python again. Without Python.
//
// It was made so:
//
//   model = Mlp()
//   batch = torch.export.Dim("batch", min=1, max=64)
//   torch.export.save(torch.export.export(model, (torch.rand(3, 8),), dynamic_shapes=({0: batch},)), "mlp.pt2")
//
// and what this program writes is used so:
//
//   model = torch.export.load("tuned.pt2").module()
//   model(torch.rand(5, 8))
#include <torch/torch.h>

#include <cstdio>
#include <iostream>
#include <memory>

#include <fxgraph/fx.h>

struct Net : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(8, 16));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(16, 4));
  torch::Tensor forward(torch::Tensor x) { return second(torch::relu(first(x))); }
};

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: exported_program MODEL.pt2\n";
    return 2;
  }
  torch::manual_seed(0);
  const torch::Tensor samples = torch::rand({32, 8}), wanted = torch::rand({32, 4});

  // [tune]
  auto gm = fx::load(argv[1]);                   // "mlp.pt2", what torch.export.save wrote
  torch::optim::SGD sgd(gm->parameters(), 0.1);  // it is a module: forward, backward, step
  for (int step = 0; step < 50; ++step) {
    sgd.zero_grad();
    torch::Tensor loss = torch::mse_loss(gm->forward(samples), wanted);
    loss.backward();
    sgd.step();
    if (step % 49 == 0) std::cout << "loss " << loss.item<double>() << '\n';
  }
  gm->save("tuned.pt2");  // Python: torch.export.load("tuned.pt2").module()(x)
  // [end]

  // [sizes]
  auto again = fx::load("tuned.pt2");
  again->forward(torch::rand({5, 8}));  // the batch may be anything from 1 to 64, as it was exported
  try {
    again->forward(torch::rand({65, 8}));
  } catch (const fx::Error& error) {
    std::cout << error.what() << '\n';  // … the size of the input 'x' in dimension 0 must be at most 64
  }
  // [end]

  // [write]
  auto net = std::make_shared<Net>();
  auto traced = fx::symbolic_trace(net, {torch::rand({2, 8})});
  traced->save("mine.pt2");  // the batch is free, as in the trace
  // [end]
  const torch::Tensor x = torch::rand({7, 8});
  const bool equal = torch::allclose(fx::load("mine.pt2")->forward(x), net->forward(x));
  std::remove("tuned.pt2");
  std::remove("mine.pt2");
  return equal ? 0 : 1;
}
