// What `optimize` makes is put beside the caller's modules, not into them: their state is as it was, and they can be
// cloned.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/support/error_of.h"

namespace fx::callers_modules_test {

using torch::Tensor;

struct Net : torch::nn::Cloneable<Net> {
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};
  torch::nn::Linear first{nullptr}, second{nullptr};
  Net() { reset(); }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 4, 1)));
    bn = register_module("bn", torch::nn::BatchNorm2d(4));
    first = register_module("first", torch::nn::Linear(8, 8));
    second = register_module("second", torch::nn::Linear(8, 8));
  }
  // The convolution with and without its batch norm: one call keeps it as it is.
  Tensor forward(Tensor x) { return second(torch::relu(first(conv(torch::relu(bn(conv(x))))))); }
};

std::vector<std::string> state_of(const torch::nn::Module& module) {
  std::vector<std::string> names = module.named_parameters().keys();
  for (const std::string& name : module.named_buffers().keys()) names.push_back(name);
  return names;
}

TEST(CallersModules, GetNoTensorsOfOptimize) {
  const Tensor x = torch::rand({2, 4, 8, 8});
  const OptimizeOptions for_the_processor{.inputs = {tensor_info(x)}, .target = "cpu"};
  const OptimizeOptions inlined{.rules = {"inline-modules", "inference"}, .inputs = {tensor_info(x)}};
  const OptimizeOptions folded{.rules = {"inline-modules", "fuse-conv-bn"}, .inputs = {tensor_info(x)}};
  for (const OptimizeOptions* options : {&for_the_processor, &inlined, &folded}) {
    const auto net = std::make_shared<Net>();
    net->eval();
    const Tensor wanted = net->forward(x);
    const std::vector<std::string> before = state_of(*net);
    for (int times = 0; times < 2; ++times) {
      const auto traced = symbolic_trace(net, {x});
      optimize(*traced, *options);
      EXPECT_EQ(state_of(*net), before);
      EXPECT_TRUE(net->clone());
      EXPECT_TRUE(traced->clone_graph_module()->forward(x).allclose(wanted, 1e-3, 1e-4));
      EXPECT_TRUE(traced->forward(x).allclose(wanted, 1e-3, 1e-4));
    }
  }
}

TEST(CallersModules, RefuseTensorsThatAreNotTheirs) {
  const auto net = std::make_shared<Net>();
  const auto traced = symbolic_trace(net, {torch::rand({2, 4, 8, 8})});
  EXPECT_EQ(testing::error_of([&] { traced->set_attribute("conv.extra", torch::ones({1})); }),
            "cannot put a tensor at 'conv.extra': 'conv' is a module of C++ that others may hold, and its copies have "
            "what its "
            "constructor makes; put it at 'conv_extra'");
  traced->set_attribute("conv_extra", torch::ones({1}));
  EXPECT_EQ(traced->fresh_path("conv.extra"), "conv_extra_1");
}

}  // namespace fx::callers_modules_test
