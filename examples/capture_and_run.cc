// Capture a module, look at it, run it, save it and load it again.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>

// [net]
struct Net : torch::nn::Module {  // ordinary LibTorch code; knows nothing of fxgraph
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 8, 3));
  torch::nn::BatchNorm2d bn = register_module("bn", torch::nn::BatchNorm2d(8));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(8, 10));
  torch::Tensor forward(torch::Tensor x) { return fc(torch::relu(bn(conv(x))).mean({2, 3})); }
};
// [end]

int main() {
  const std::string file = std::filesystem::temp_directory_path() / "fxgraph_capture_and_run.pt";
  const torch::Tensor x = torch::rand({1, 3, 32, 32});
  // [capture]
  auto net = std::make_shared<Net>();
  net->eval();
  auto gm = fx::symbolic_trace(net, {torch::rand({1, 3, 32, 32})});  // examples give shapes; leave them out for none
  gm->graph().print_tabular();
  std::cout << gm->code();           // Python; fx::code(*gm, fx::Language::cpp) for C++
  torch::Tensor y = gm->forward(x);  // a torch::nn::Module like any other
  gm->save(file);                    // TorchScript: LibTorch and Python load it
  auto again = fx::load(file);
  // [end]
  TORCH_CHECK(torch::equal(y, net->forward(x)));
  TORCH_CHECK(torch::allclose(again->forward(x), y));
  std::filesystem::remove(file);
  return 0;
}
