// Batch normalisation folded into the convolution or the linear layer beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/trace/symbolic_trace.h>
#include "tests/rules/apply_rule.h"

namespace fx::rules::batch_norm_test {

using ::testing::HasSubstr;
using namespace fx::testing;

struct Norms : torch::nn::Module {
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d before{nullptr}, after{nullptr};
  Norms() {
    before = register_module("before", torch::nn::BatchNorm1d(4));
    first = register_module("first", torch::nn::Linear(4, 6));
    after = register_module("after", torch::nn::BatchNorm1d(6));
    second = register_module("second", torch::nn::Linear(torch::nn::LinearOptions(6, 2).bias(false)));
    const torch::NoGradGuard no_grad;
    for (auto& buffer : named_buffers()) {
      if (buffer.value().is_floating_point()) buffer.value().uniform_(0.5, 2);
    }
    for (torch::Tensor& parameter : parameters()) parameter.uniform_(-1, 1);
  }
  torch::Tensor forward(torch::Tensor x) { return second(torch::relu(after(first(before(x))))); }
};

TEST(FuseConvBn, FoldsIntoLinearLayersToo) {
  const auto net = std::make_shared<Norms>();
  net->eval();
  const auto module = symbolic_trace(net, {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  EXPECT_EQ(apply("fuse-linear-bn", module, kRows).outcome.applied, 1u);
  const Applied before = apply("fuse-bn-linear", module, kRows);
  EXPECT_EQ(before.outcome.applied, 1u);
  ASSERT_FALSE(before.outcome.refused.empty() && count_modules(*before.module) == 0);
}

// torch.fx's optimization.fuse folds the norm into the weights of both calls.
TEST(FuseConvBn, AConvolutionThatIsCalledInTwoPlaces) {
  struct Net : torch::nn::Module {
    torch::nn::Conv2d conv{nullptr};
    torch::nn::BatchNorm2d bn{nullptr};
    Net() {
      conv = register_module("conv", torch::nn::Conv2d(3, 3, 1));
      bn = register_module("bn", torch::nn::BatchNorm2d(3));
      const torch::NoGradGuard no_grad;
      bn->running_mean.uniform_(-1, 1);
      bn->running_var.uniform_(0.5, 2);
    }
    torch::Tensor forward(torch::Tensor x) { return bn(conv(x)) + conv(x + 1); }
  };
  const auto net = std::make_shared<Net>();
  net->eval();
  const Applied applied =
      apply("fuse-conv-bn", symbolic_trace(net, {torch::randn({2, 3, 4, 4})}, {.sizes = Sizes::fixed}),
            {TensorInfo{.sizes = {2, 3, 4, 4}}});
  EXPECT_EQ(applied.outcome.applied, 1u);
  EXPECT_EQ(count_modules(*applied.module), 2u) << "a convolution of its own for each place";
}

// Layers that are called again and again, as unrolled loops do, with one norm behind or with two.
struct Unrolled : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(16, 16, 3));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(16));
  torch::nn::BatchNorm2d other = register_module("other", torch::nn::BatchNorm2d(16));
  bool as_functions, norms_twice;
  Unrolled(bool functions, bool twice) : as_functions(functions), norms_twice(twice) {
    const torch::NoGradGuard no_grad;
    for (auto& each : {norm, other}) {
      each->running_mean.uniform_(-1, 1);
      each->running_var.uniform_(0.5, 2);
    }
  }
  torch::Tensor normalised(const torch::nn::BatchNorm2d& by, const torch::Tensor& x) {
    if (!as_functions) return torch::nn::BatchNorm2d(by)(x);
    return torch::batch_norm(x, by->weight, by->bias, by->running_mean, by->running_var, false, 0.1, 1e-5, false);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (int i = 0; i < 4; ++i) {
      x = as_functions ? torch::conv2d(x, conv->weight, conv->bias, 1, 1)
                       : conv(torch::constant_pad_nd(x, {1, 1, 1, 1}));
      x = normalised(norm, x);
      if (norms_twice) x = normalised(other, x);
      x = torch::relu(x);
    }
    return x;
  }
};

std::int64_t elements_of(const GraphModule& module) {
  std::int64_t elements = 0;
  for (const torch::Tensor& parameter : module.parameters()) elements += parameter.numel();
  return elements;
}

TEST(FuseConvBn, WeightsThatCallsShareStayShared) {
  const std::vector<TensorInfo> images = {TensorInfo{.sizes = {2, 16, 9, 8}}};
  for (const bool as_functions : {false, true}) {
    for (const bool norms_twice : {false, true}) {
      for (const char* target : {"", "cpu"}) {
        SCOPED_TRACE(std::string(as_functions ? "functions" : "modules") + (norms_twice ? ", two norms" : "") + target);
        const auto net = std::make_shared<Unrolled>(as_functions, norms_twice);
        net->eval();
        const torch::Tensor x = torch::randn(images[0].sizes);
        const auto module = symbolic_trace(net, {x}, {.sizes = Sizes::fixed});
        const auto original = module->clone_graph_module();
        optimize(*module, {.inputs = images, .target = target});
        EXPECT_EQ(count(*module, "aten::batch_norm"), 0u);
        EXPECT_TRUE(verify_equivalent(*original, *module, {{x}}, 1e-4).equal);
        EXPECT_LE(elements_of(*module), elements_of(*original));
      }
    }
  }
}

// A convolution without a batch makes as many dimensions as one with a batch of a dimension less, and the norm then
// takes rows for channels.
TEST(FuseConvBn, TheBatchIsThere) {
  struct Net : torch::nn::Module {
    torch::nn::Conv3d conv = register_module("conv", torch::nn::Conv3d(3, 4, 3));
    torch::nn::BatchNorm2d bn = register_module("bn", torch::nn::BatchNorm2d(4));
    Net() {
      bn->running_mean.uniform_(-1, 1);
      bn->running_var.uniform_(0.5, 2);
    }
    torch::Tensor forward(torch::Tensor x) { return bn(conv(x)); }
  };
  const auto net = std::make_shared<Net>();
  net->eval();
  const torch::Tensor x = torch::randn({3, 6, 5, 5});
  const auto original = symbolic_trace(net, {x}, {.sizes = Sizes::fixed});
  original->eval();
  using Inputs = std::vector<TensorInfo>;
  for (const Inputs& inputs : {Inputs{}, Inputs{TensorInfo{.sizes = {3, 6, 5, 5}}}}) {
    const auto module = original->clone_graph_module();
    const RuleOutcome outcome = optimize(*module, {.rules = {"fuse-conv-bn"}, .inputs = inputs}).rules.front();
    EXPECT_EQ(outcome.applied, 0u);
    ASSERT_EQ(outcome.refused.size(), 1u);
    EXPECT_THAT(outcome.refused[0].reason, HasSubstr("there is no batch dimension"));
    const Verification check = verify_equivalent(*original, *module, {{x}}, 1e-5);
    EXPECT_TRUE(check.equal) << check;
  }
}

TEST(FuseConvBn, LinearLayersNeedTheRank) {
  const auto net = std::make_shared<Norms>();
  net->eval();
  const auto module = symbolic_trace(net, {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  const RuleOutcome outcome = optimize(*module, {.rules = {"fuse-linear-bn"}}).rules.front();
  EXPECT_EQ(outcome.applied, 0u);
  ASSERT_EQ(outcome.refused.size(), 1u);
  EXPECT_THAT(outcome.refused[0].reason, HasSubstr("give --input"));
}

TEST(FuseConvBn, AWeightThatIsWrittenThroughAViewIsNoConstant) {
  struct Net : torch::nn::Module {
    torch::Tensor w = register_parameter("w", torch::rand({2, 3, 1, 1}), /*requires_grad=*/false);
    torch::Tensor mean = register_buffer("mean", torch::rand({2}));
    torch::Tensor variance = register_buffer("variance", torch::rand({2}) + 1);
    torch::Tensor forward(torch::Tensor x) {
      w.view({-1}).add_(1);
      return torch::batch_norm(torch::conv2d(x, w), {}, {}, mean, variance, false, 0.1, 1e-5, false);
    }
  };
  const auto module = symbolic_trace(std::make_shared<Net>());
  const RuleOutcome outcome = optimize(*module, {.rules = {"fuse-conv-bn"}}).rules.front();
  EXPECT_EQ(outcome.applied, 0u) << print_graph(module->graph());
  ASSERT_EQ(outcome.refused.size(), 1u);
  EXPECT_EQ(outcome.refused[0].reason, "the program writes to w");
}

}  // namespace fx::rules::batch_norm_test
