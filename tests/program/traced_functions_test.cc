// Functions as patterns and replacements, on programs with weights.
#include <fxgraph/rewriter/program/traced_functions.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/support/error_of.h"

namespace fx::traced_functions_test {

using testing::error_of;
using ::testing::HasSubstr;

std::size_t count(const GraphModule& module, const char* target) {
  return module.graph().count(Op::call_function, Symbol(target));
}

TEST(TracedPatterns, FunctionsReplaceFunctions) {
  const auto gm = symbolic_trace([](torch::Tensor x, torch::Tensor w) {
    return torch::relu(torch::matmul(x, w)) + torch::relu(torch::matmul(w, x));
  });
  const auto pattern = [](torch::Tensor x, torch::Tensor w) { return torch::relu(torch::matmul(x, w)); };
  const auto replacement = [](torch::Tensor x, torch::Tensor w) { return torch::clamp_min(torch::mm(x, w), 0); };
  const torch::Tensor x = torch::randn({3, 3}), w = torch::randn({3, 3});
  const torch::Tensor before = gm->forward(x, w);
  const RewriteReport report = replace_pattern(*gm, pattern, replacement);
  EXPECT_EQ(report.applied, 2u);
  EXPECT_EQ(count(*gm, "aten::mm"), 2u) << print_graph(gm->graph());
  EXPECT_TRUE(torch::allclose(gm->forward(x, w), before));
}

TEST(TracedPatterns, LiteralsAreCapturedAndComputedWith) {
  const auto gm = symbolic_trace([](torch::Tensor x) { return (x / 4.0) + (x / 0.5); });
  const RewriteReport report = replace_pattern(
      *gm, [](torch::Tensor x, double c) { return x / c; }, [](torch::Tensor x, double c) { return x * (1.0 / c); });
  EXPECT_EQ(report.applied, 2u);
  const std::string text = print_graph(gm->graph());
  EXPECT_THAT(text, HasSubstr("0.25"));
  EXPECT_THAT(text, HasSubstr("2.0"));
  EXPECT_TRUE(torch::equal(gm->forward(torch::ones({2})), torch::full({2}, 2.25)));
}

TEST(TracedPatterns, GenericLambdasAreFunctionsOfTensors) {
  const auto gm = symbolic_trace([](torch::Tensor x) { return x.relu(); });
  const RewriteReport report = replace_pattern(
      *gm, [](auto x) { return x.relu(); }, [](auto x) { return torch::where(x > 0, x, torch::zeros_like(x)); });
  EXPECT_EQ(report.applied, 1u);
}

Node& doubled(const Match& match, Rewriter& rewriter) {
  return rewriter.call_function("aten::mul.Scalar", {match["x"], 2});
}

TEST(TracedPatterns, AFunctionOfAMatchBuilds) {
  const auto gm = symbolic_trace([](torch::Tensor x) { return torch::relu(x); });
  EXPECT_EQ(replace_pattern(*gm, "aten::relu(x)", doubled).applied, 1u);
  EXPECT_TRUE(torch::equal(gm->forward(torch::ones({2})), torch::full({2}, 2.0)));
}

TEST(TracedPatterns, OnePatternFindsConvolutionsOfAnyStride) {
  const auto gm = symbolic_trace(
      [](torch::Tensor x, torch::Tensor w) { return torch::conv1d(x, w, {}, 2) + torch::conv1d(x, w, {}, 2, 1); });
  const auto strided = [](torch::Tensor x, torch::Tensor w, int64_t stride) { return torch::conv1d(x, w, {}, stride); };
  EXPECT_EQ(find(gm->graph(), Pattern(strided)).size(), 1u) << "the other one has a padding";
}

TEST(TracedPatterns, BuildersStayBuilders) {
  const auto gm = symbolic_trace([](torch::Tensor x) { return x.relu(); });
  const RewriteReport report =
      replace_pattern(*gm, "aten::relu(x)", [](const Match& match, Rewriter& rewriter) -> Node& {
        return rewriter.call_function("aten::sigmoid", {match["x"]});
      });
  EXPECT_EQ(report.applied, 1u);
}

TEST(TracedPatterns, CapturedTensorsAreRefusedWithTheCure) {
  const torch::Tensor outside = torch::ones({2});
  EXPECT_THAT(error_of([&] { Pattern([&](torch::Tensor x) { return x + outside; }); }),
              HasSubstr("uses a tensor from outside"));
}

TEST(TracedPatterns, ParametersThatThePatternDoesNotUseHaveNoValue) {
  const auto gm = symbolic_trace([](torch::Tensor x) { return torch::neg(x) * 2; });
  const std::string before = print_graph(gm->graph());
  const auto pattern = [](torch::Tensor x, torch::Tensor) { return torch::neg(x); };
  for (const auto& taken :
       {+[](torch::Tensor x, torch::Tensor y) { return x + y; }, +[](torch::Tensor, torch::Tensor y) { return y; }})
    EXPECT_THAT(error_of([&] { replace_pattern(*gm, pattern, taken); }), HasSubstr("which the pattern does not bind"));
  EXPECT_THAT(error_of([&] {
                replace_pattern(
                    *gm, [](torch::Tensor x, double, double d) { return torch::neg(x) * d; },
                    [](torch::Tensor x, double c, double d) { return (x + c) * d; });
              }),
              HasSubstr("a literal that the pattern does not use"));
  EXPECT_EQ(print_graph(gm->graph()), before);
  EXPECT_EQ(replace_pattern(
                *gm, [](torch::Tensor x, double, bool) { return torch::neg(x); },
                [](torch::Tensor x, double, bool) { return torch::sin(x); })
                .applied,
            1u);
}

TEST(TracedPatterns, AModuleBringsItsParameters) {
  const auto gm = symbolic_trace([](torch::Tensor x) { return x.relu() + 1; });
  torch::nn::Linear linear(2, 2);
  const auto replacement = symbolic_trace(linear);
  EXPECT_EQ(replace_pattern(*gm, "aten::relu(x)", *replacement).applied, 1u);
  const torch::Tensor x = torch::randn({3, 2});
  EXPECT_TRUE(torch::allclose(gm->forward(x), linear(x) + 1));
  EXPECT_EQ(gm->parameters().size(), 2u);
}

TEST(TracedPatterns, NothingIsAddedWhenNothingMatches) {
  const auto gm = symbolic_trace([](torch::Tensor x) { return x.relu(); });
  torch::nn::Linear linear(2, 2);
  EXPECT_EQ(replace_pattern(*gm, "aten::sin(x)", *symbolic_trace(linear)).applied, 0u);
  EXPECT_TRUE(gm->parameters().empty());
}

}  // namespace fx::traced_functions_test
