// Kernels with packed weights check nothing of their inputs: programs that call them assert what is not sure.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>

#include "tests/rules/everywhere.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::packed_checks_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using Sizes = std::vector<std::int64_t>;

std::size_t assertions(const GraphModule& module) { return module.graph().count(Op::call_function, "torch._assert"); }

std::shared_ptr<GraphModule> lowered_by(const GraphModule& original, const Sizes& sizes, std::string_view part) {
  auto lowered = original.clone_graph_module();
  const std::vector<TensorInfo> inputs = {TensorInfo{.sizes = sizes}};
  testing::rewrite_everywhere(*lowered, {"lowering"}, {part}, propagate_shapes(*lowered, inputs));
  optimize(*lowered, {.rules = {"channels-last", "in-place"}, .inputs = inputs});
  return lowered;
}

/// It refuses what the original refuses, and computes the rest.
void expect_same_inputs(const GraphModule& original, const GraphModule& lowered, const std::vector<Sizes>& all) {
  const at::NoGradGuard no_grad;
  torch::jit::Module script = testing::saved_and_loaded(lowered);
  for (const Sizes& sizes : all) {
    const at::Tensor x = at::randn(sizes);
    std::optional<at::Tensor> expected;
    try {
      expected = original.clone_graph_module()->forward(x);
    } catch (const std::exception&) {
    }
    const bool unbatched = sizes.size() == 3;
    for (const bool in_script : {false, true}) {
      try {
        const at::Tensor y = in_script ? script.forward({x}).toTensor() : lowered.clone_graph_module()->forward(x);
        ASSERT_TRUE(expected) << "takes " << at::IntArrayRef(sizes) << "\n" << print_graph(lowered.graph());
        EXPECT_LE(relative_difference(*expected, y), 1e-4) << at::IntArrayRef(sizes);
      } catch (const std::exception& error) {
        // What gives nothing some versions of LibTorch refuse, too.
        EXPECT_TRUE(!expected || unbatched || expected->numel() == 0)
            << "refuses " << at::IntArrayRef(sizes) << ": " << error.what();
        EXPECT_THAT(error.what(), HasSubstr("with packed weights takes nothing else")) << at::IntArrayRef(sizes);
      }
    }
  }
}

const std::vector<Sizes> kImages = {{1, 3, 32, 32}, {2, 3, 32, 32}, {1, 1, 32, 32}, {1, 4, 32, 32},   {1, 3, 2, 2},
                                    {1, 3, 4, 40},  {1, 3, 3, 3},   {1, 3, 5, 5},   {1, 3, 6, 9},     {3, 32, 32},
                                    {3, 3, 32},     {1, 3, 0, 32},  {1, 6, 32, 32}, {2, 1, 3, 32, 32}};

std::shared_ptr<GraphModule> convolutions() {
  at::manual_seed(1);
  const GraphModule::Attributes weights = {
      {"a", at::randn({16, 3, 3, 3})}, {"b", at::randn({16, 1, 3, 3})}, {"c", at::randn({24, 16, 1, 1})}};
  return std::make_shared<GraphModule>(weights, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=a]
    %b = get_attr[target=b]
    %c = get_attr[target=c]
    %p = call_function[target=aten::conv2d](args = (%x, %a))
    %q = call_function[target=aten::relu6](args = (%p,))
    %r = call_function[target=aten::conv2d](args = (%q, %b, None, [1, 1], [0, 0], [1, 1], 16))
    %s = call_function[target=aten::relu6](args = (%r,))
    %t = call_function[target=aten::conv2d](args = (%s, %c))
    %u = call_function[target=aten::relu6](args = (%t,))
    return u
)"));
}

TEST(PackedChecks, ConvolutionsRefuseWhatTheirKernelsCannotTake) {
  const auto original = convolutions();
  for (const char* part : {"lower-convolution/xnnpack", "lower-convolution/onednn"}) {
    const auto lowered = lowered_by(*original, {1, 3, 32, 32}, part);
    EXPECT_EQ(std::ranges::count_if(lowered->graph().nodes(), rules::is_packed_convolution), 3);
    expect_same_inputs(*original, *lowered, kImages);
  }
}

TEST(PackedChecks, TransposedConvolutionsToo) {
  at::manual_seed(1);
  const GraphModule::Attributes weights = {{"a", at::randn({3, 8, 2, 2})}, {"b", at::randn({8, 2, 3, 3})}};
  const GraphModule original(weights, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=a]
    %b = get_attr[target=b]
    %p = call_function[target=aten::conv_transpose2d](args = (%x, %a, None, [2, 2], [3, 3]))
    %q = call_function[target=aten::relu](args = (%p,))
    %r = call_function[target=aten::conv_transpose2d](args = (%q, %b, None, [1, 1], [2, 2], [0, 0], 4))
    return r
)"));
  const auto lowered = lowered_by(original, {1, 3, 32, 32}, "lower-convolution/xnnpack");
  EXPECT_EQ(std::ranges::count_if(lowered->graph().nodes(), rules::is_packed_convolution), 2);
  expect_same_inputs(original, *lowered, kImages);
}

TEST(PackedChecks, LinearLayersRefuseOtherFeatures) {
  at::manual_seed(1);
  const GraphModule original({{"w", at::randn({5, 8})}}, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %y = call_function[target=aten::linear](args = (%x, %w))
    return y
)"));
  const auto lowered = lowered_by(original, {3, 8}, "lower-linear/onednn");
  EXPECT_EQ(assertions(*lowered), 3u) << print_graph(lowered->graph());
  expect_same_inputs(original, *lowered, {{3, 8}, {1, 8}, {3, 7}, {3, 9}, {3, 1}});
  const at::NoGradGuard no_grad;
  EXPECT_THROW(lowered->forward(at::randn({2, 3, 8})), std::exception);
  EXPECT_THROW(lowered->forward(at::randn({3, 8}).to(at::kBFloat16)), std::exception);
}

// Where images come in, and no more: padding makes every size legal, and channels follow from what made them.
TEST(PackedChecks, AssertsOnceWhatFollowsFromThere) {
  const auto original = std::make_shared<GraphModule>(GraphModule::Attributes{{"a", at::randn({16, 3, 3, 3})},
                                                                              {"b", at::randn({16, 1, 3, 3})},
                                                                              {"c", at::randn({16, 16, 1, 1})},
                                                                              {"d", at::randn({8, 32, 1, 1})},
                                                                              {"m", at::zeros({16})},
                                                                              {"v", at::ones({16})}},
                                                      parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=a]
    %b = get_attr[target=b]
    %c = get_attr[target=c]
    %d = get_attr[target=d]
    %m = get_attr[target=m]
    %v = get_attr[target=v]
    %p = call_function[target=aten::conv2d](args = (%x, %a, None, [2, 2], [1, 1]))
    %q = call_function[target=aten::hardswish](args = (%p,))
    %r = call_function[target=aten::conv2d](args = (%q, %b, None, [1, 1], [1, 1], [1, 1], 16))
    %s = call_function[target=aten::batch_norm](args = (%r, None, None, %m, %v, False, 0.1, 1e-5, False))
    %pool = call_function[target=aten::adaptive_avg_pool2d](args = (%s, [1, 1]))
    %gate = call_function[target=aten::conv2d](args = (%pool, %c))
    %sigmoid = call_function[target=aten::sigmoid](args = (%gate,))
    %t = call_function[target=aten::mul.Tensor](args = (%s, %sigmoid))
    %sum = call_function[target=aten::add.Tensor](args = (%q, %t))
    %cat = call_function[target=aten::cat](args = ([%sum, %q], 1))
    %last = call_function[target=aten::max_pool2d](args = (%cat, [2, 2]))
    %u = call_function[target=aten::conv2d](args = (%last, %d))
    return u
)"));
  for (const char* part : {"lower-convolution/xnnpack", "lower-convolution/onednn"}) {
    const auto lowered = lowered_by(*original, {1, 3, 32, 32}, part);
    EXPECT_EQ(std::ranges::count_if(lowered->graph().nodes(), rules::is_packed_convolution), 4);
    // Rank, channels, height, width; the type, for oneDNN multiplies bfloat16 by float32.
    const std::size_t all = std::string_view(part).ends_with("onednn") ? 5 : 4;
    EXPECT_EQ(assertions(*lowered), all) << print_graph(lowered->graph());
    const at::NoGradGuard no_grad;
    EXPECT_ANY_THROW(lowered->forward(at::randn({1, 3, 32, 32}).to(at::kBFloat16)));
    const auto again = from_torchscript(testing::saved_and_loaded(*lowered));
    optimize(*again, {.rules = {"channels-last"}, .inputs = {TensorInfo{.sizes = {1, 3, 32, 32}}}});
    EXPECT_EQ(assertions(*again), all) << print_graph(again->graph());
    // And back: what the program takes stays what it is.
    for (const auto& module : {lowered, again}) {
      const std::string taken = module->contract().str();
      optimize(*module, {.rules = {"decompose-packed"}});
      EXPECT_EQ(assertions(*module), all) << print_graph(module->graph());
      EXPECT_EQ(module->contract().str(), taken);
    }
  }
}

// What sizes of real numbers make is asked where it enters.
TEST(PackedChecks, OfImagesThatAreScaled) {
  for (const char* up :
       {"nearest2d.vec](args = (%p, None, [2.0, 2.0]))", "bilinear2d.vec](args = (%p, None, False, [0.5, 0.5]))"}) {
    at::manual_seed(1);
    const GraphModule original({{"a", at::randn({8, 3, 3, 3})}, {"b", at::randn({8, 8, 3, 3})}}, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=a]
    %b = get_attr[target=b]
    %p = call_function[target=aten::conv2d](args = (%x, %a))
    %u = call_function[target=aten::upsample_)" + std::string(up) + R"(
    %q = call_function[target=aten::conv2d](args = (%u, %b))
    return q)"));
    const auto lowered = lowered_by(original, {1, 3, 16, 16}, "lower-convolution/xnnpack");
    expect_same_inputs(original, *lowered, {{1, 3, 16, 16}, {2, 3, 8, 20}, {1, 3, 8, 9}, {1, 2, 16, 16}});
  }
}

// addcmul would spread one channel over all.
TEST(PackedChecks, ANormStillRefusesOneChannel) {
  const GraphModule original({{"m", at::randn({3})}, {"v", at::ones({3})}}, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %m = get_attr[target=m]
    %v = get_attr[target=v]
    %n = call_function[target=aten::batch_norm](args = (%x, None, None, %m, %v, False, 0.1, 1e-05, False))
    return n)"));
  const auto lowered = lowered_by(original, {2, 3, 14, 10}, "lower-norm/scaled");
  ASSERT_EQ(lowered->graph().count(Op::call_function, "aten::batch_norm"), 0u);
  const at::NoGradGuard no_grad;
  EXPECT_THROW(lowered->forward(at::randn({2, 1, 14, 10})), std::exception);
  EXPECT_LE(relative_difference(original.clone_graph_module()->forward(at::ones({1, 3, 2, 2})),
                                lowered->forward(at::ones({1, 3, 2, 2}))),
            1e-5);
}

TEST(PackedChecks, TrustsWhatTheProgramAsserts) {
  const GraphModule original({{"a", at::randn({16, 3, 3, 3})}}, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=a]
    %dim = call_function[target=aten::dim](args = (%x,))
    %four = call_function[target=operator.eq](args = (%dim, 4))
    %assert1 = call_function[target=torch._assert](args = (%four, 'four'))
    %size = call_function[target=aten::size.int](args = (%x, 1))
    %three = call_function[target=operator.eq](args = (%size, 3))
    %assert2 = call_function[target=torch._assert](args = (%three, 'three'))
    %height = call_function[target=aten::size.int](args = (%x, 2))
    %more = call_function[target=operator.ge](args = (%height, 8))
    %assert3 = call_function[target=torch._assert](args = (%more, 'eight'))
    %p = call_function[target=aten::conv2d](args = (%x, %a))
    return p
)"));
  EXPECT_EQ(assertions(*lowered_by(original, {1, 3, 32, 32}, "lower-convolution/xnnpack")), 4u);  // the width
}

// A copy of a weight in another type is made once, unless the caller gets it and may write to it.
TEST(PackedWeights, CopiesThatTheCallerGetsAreMadeInEachCall) {
  for (const auto& [result, prepared] :
       std::vector<std::pair<std::string, std::size_t>>{{"c", 0}, {"v", 0}, {"s", 1}, {"(s, c)", 0}}) {
    GraphModule module({{"w", at::randn({2, 3})}}, parse_graph(R"(graph():
    %w = get_attr[target=w]
    %c = call_function[target=aten::_to_copy](args = (%w,), kwargs = {dtype: torch.float64})
    %v = call_function[target=aten::view](args = (%c, [3, 2]))
    %s = call_function[target=aten::sum](args = (%v,))
    return )" + result));
    EXPECT_EQ(rules::prepare_weights(module), prepared) << result;
  }
}

}  // namespace fx::packed_checks_test
