// fxgraph::max_pool2d in the place of aten::max_pool2d: the same numbers for any windows, images and layouts, those
// that are none included, and refusals where LibTorch refuses.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <random>

#include <fxgraph/fx.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>

#include "tests/rules/everywhere.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::pool_lowering_test {

using Sizes = std::vector<std::int64_t>;

struct Windows {
  Sizes kernel, stride, padding, dilation;
  bool ceil_mode;
};

std::shared_ptr<GraphModule> program_of(const Windows& windows, const char* target = "aten::max_pool2d") {
  Graph graph;
  const auto list = [](const Sizes& sizes) {
    return Argument::list(std::vector<Argument>(sizes.begin(), sizes.end()));
  };
  graph.output(graph.call_function(target, {graph.placeholder("x"), list(windows.kernel), list(windows.stride),
                                            list(windows.padding), list(windows.dilation), windows.ceil_mode}));
  return std::make_shared<GraphModule>(GraphModule::Attributes{}, std::move(graph));
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}

  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }
  Sizes sizes(std::int64_t least, std::int64_t most, std::size_t count) {
    Sizes made;
    for (std::size_t i = 0; i < count; ++i) made.push_back(number(least, most));
    return made;
  }
  Windows windows() {
    const auto count = static_cast<std::size_t>(number(1, 2));
    Windows made{sizes(1, 4, count),
                 number(0, 3) == 0 ? Sizes{} : sizes(1, 4, static_cast<std::size_t>(number(1, 2))),
                 {},
                 sizes(1, number(0, 5) == 0 ? 2 : 1, 2),
                 number(0, 1) == 1};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t kernel = made.kernel[std::min(i, count - 1)];
      made.padding.push_back(number(0, kernel / 2 + (number(0, 9) == 0 ? 1 : 0)));
    }
    return made;
  }
  /// With what is no number, no bound and the same twice.
  at::Tensor image() {
    at::Tensor made = at::randn(sizes(1, 9, 4)).mul(2).round();
    if (number(0, 2) == 0) made.masked_fill_(at::rand_like(made) < 0.1, std::numeric_limits<double>::quiet_NaN());
    if (number(0, 2) == 0) made.masked_fill_(at::rand_like(made) < 0.3, -std::numeric_limits<double>::infinity());
    switch (number(0, 5)) {
      case 0: return made;
      case 1: return made.to(at::kDouble).contiguous(at::MemoryFormat::ChannelsLast);
      case 2: return made.transpose(2, 3);
      case 3: return made.select(0, 0);
      default: return made.contiguous(at::MemoryFormat::ChannelsLast);
    }
  }

 private:
  std::mt19937 engine_;
};

/// Nothing where it refuses.
std::optional<at::Tensor> result_of(GraphModule& module, const at::Tensor& x) {
  try {
    return module.forward(x);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

TEST(PoolLowering, IsTheSameForAnyWindowsAndImages) {
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  Random random(1);
  int compared = 0;
  for (int round = 0; round < 3000; ++round) {
    const Windows windows = random.windows();
    const auto original = program_of(windows), made = program_of(windows, "fxgraph::max_pool2d");
    const at::Tensor x = random.image();
    const auto was = result_of(*original, x), is = result_of(*made, x);
    ASSERT_EQ(was.has_value(), is.has_value()) << print_graph(original->graph()) << x.sizes() << x.strides();
    if (!was) continue;
    ++compared;
    ASSERT_TRUE(at::allclose(*was, *is, 0, 0, /*equal_nan=*/true))
        << print_graph(original->graph()) << x.sizes() << x.strides();
    ASSERT_EQ(was->is_contiguous(), is->is_contiguous()) << x.sizes() << x.strides();
    ASSERT_EQ(was->suggest_memory_format(), is->suggest_memory_format()) << x.sizes() << x.strides();
  }
  EXPECT_GT(compared, 1500);
}

TEST(PoolLowering, HasTheGradientsOfLibTorch) {
  const Windows windows{{3, 3}, {2, 2}, {1, 1}, {1, 1}, true};
  const at::Tensor x = at::randn({2, 3, 7, 8}).round().contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const auto gradient = [&](const char* target) {
    return torch::autograd::grad({program_of(windows, target)->forward(x).square().sum()}, {x})[0];
  };
  EXPECT_TRUE(at::equal(gradient("aten::max_pool2d"), gradient("fxgraph::max_pool2d")));
}

TEST(PoolLowering, IsSavedAsWhatLibTorchRunsComesBackAndIsUndone) {
  const at::NoGradGuard no_grad;
  const Windows windows{{3, 3}, {2, 2}, {0, 1}, {1, 1}, true};
  const auto original = program_of(windows), made = original->clone_graph_module();
  const at::Tensor x = at::randn({2, 5, 12, 9}).contiguous(at::MemoryFormat::ChannelsLast);
  testing::rewrite_everywhere(*made, {"lowering"}, {"lower-pool"},
                              propagate_shapes(*made, std::vector{TensorInfo{.sizes = {2, 5, 12, 9}}}));
  const auto calls = [](const GraphModule& module, const char* target) {
    return module.graph().count(Op::call_function, target);
  };
  ASSERT_EQ(calls(*made, "fxgraph::max_pool2d"), 1u);
  torch::jit::Module script = testing::saved_and_loaded(*made);
  EXPECT_TRUE(at::equal(original->forward(x), script.forward({x}).toTensor()));
  const auto back = from_torchscript(script);
  EXPECT_EQ(calls(*back, "fxgraph::max_pool2d"), 1u);
  EXPECT_TRUE(at::equal(original->forward(x), back->forward(x)));
  optimize(*back, {.rules = {"decompose-packed"}});
  EXPECT_EQ(calls(*back, "aten::max_pool2d"), 1u);
  EXPECT_EQ(calls(*back, "fxgraph::max_pool2d"), 0u);
}

TEST(PoolLowering, LeavesWindowsWithGaps) {
  const at::NoGradGuard no_grad;
  const auto made = program_of({{2, 2}, {1, 1}, {0, 0}, {1, 2}, false});
  testing::rewrite_everywhere(*made, {"lowering"}, {"lower-pool"},
                              propagate_shapes(*made, std::vector{TensorInfo{.sizes = {1, 2, 6, 6}}}));
  EXPECT_EQ(made->graph().count(Op::call_function, "fxgraph::max_pool2d"), 0u);
}

}  // namespace fx::pool_lowering_test
