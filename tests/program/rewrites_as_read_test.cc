// Rewrites where a pattern fits what modules compute, what is written for nobody, or what a definition says: results
// stay, and what was not rewritten stays as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <sstream>

#include <fxgraph/fx.h>
#include "tests/support/error_of.h"

namespace fx::rewrites_as_read_test {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

std::size_t count(const GraphModule& module, Op op, const char* target = "") {
  return module.graph().find_nodes(op, target).size();
}

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 4, 3)};
  torch::nn::BatchNorm2d bn{4};
  torch::nn::ReLU act{torch::nn::ReLUOptions().inplace(true)};
  torch::nn::Linear fc1{4, 8}, fc2{8, 2};
  Net() {
    register_module("conv", conv);
    register_module("bn", bn);
    register_module("act", act);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = act(bn(conv(x))).mean({2, 3});
    return fc2(torch::relu(fc1(x)));
  }
};

constexpr const char* kConvBnRelu = "aten::relu(aten::batch_norm(aten::conv2d(x, w: get_attr, ...), ...))";

TEST(RewritesAsRead, MatchesLieAcrossModulesAndCalls) {
  auto net = std::make_shared<Net>();
  auto gm = symbolic_trace(net, {torch::rand({2, 3, 6, 6})});
  const std::size_t calls = count(*gm, Op::call_module);
  // As in evaluation, whatever the mode.
  EXPECT_EQ(find(*gm, kConvBnRelu).size(), 1u);
  EXPECT_EQ(find(*gm, "aten::relu(aten::linear(x, w, b))").size(), 1u);
  EXPECT_EQ(find(*gm, "aten::linear(x, w, b)").size(), 2u);
  EXPECT_EQ(find(*gm, "call_module<Linear>(x)").size(), 2u);
  EXPECT_EQ(find(*gm, "aten::linear(x, w, b)", {.leaves = true}).size(), 0u);
  EXPECT_EQ(count(*gm, Op::call_module), calls);
}

TEST(RewritesAsRead, WriteOutWhatTheyTouchAndNothingElse) {
  auto net = std::make_shared<Net>();
  net->eval();
  auto gm = symbolic_trace(net, {torch::rand({2, 3, 6, 6})});
  const torch::Tensor x = torch::rand({3, 3, 8, 8}), before = gm->forward(x);
  const std::size_t calls = count(*gm, Op::call_module);
  const RewriteReport report =
      replace_pattern(*gm, "aten::relu(aten::linear(x, w, b))", "aten::clamp_min(aten::addmm(b, x, aten::t(w)), 0)");
  EXPECT_EQ(report.applied, 1u);
  EXPECT_THAT(report.written_out, ElementsAre("fc1"));
  std::ostringstream text;
  text << report;
  EXPECT_EQ(text.str(), "applied 1; wrote out 1 (fc1)");
  EXPECT_EQ(count(*gm, Op::call_module), calls - 1);
  gm->graph().lint();
  gm->recompile();
  EXPECT_TRUE(torch::allclose(gm->forward(x), before));
}

// A marker shows that the rewrite is what the program computes now, and that nothing else came with it.
TEST(RewritesAsRead, WhatIsRewrittenIsWhatIsComputed) {
  struct Marked : torch::nn::Module {
    torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 4, 3)};
    torch::nn::BatchNorm2d bn{4};
    torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({6})};
    torch::nn::Linear linear{6, 5};
    torch::nn::SiLU silu;
    torch::nn::AdaptiveAvgPool2d pool{torch::nn::AdaptiveAvgPool2dOptions(1)};
    Marked() {
      register_module("conv", conv);
      register_module("bn", bn);
      register_module("norm", norm);
      register_module("linear", linear);
      register_module("silu", silu);
      register_module("pool", pool);
    }
    torch::Tensor forward(torch::Tensor x) {
      return pool(silu(linear(norm(bn(conv(x)))))).sum({1, 2, 3}) + torch::relu6(x).sum({1, 2, 3});
    }
  };
  const torch::Tensor x = torch::randn({2, 3, 8, 8});
  const std::pair<const char*, const char*> rewrites[] = {
      {"aten::conv2d(x, w, b)", "aten::conv2d(x, w, b)"},
      {"aten::convolution(x, w, b, s, p, d, t, o, g)", "aten::convolution(x, w, b, s, p, d, t, o, g)"},
      {"aten::batch_norm(x, w, b, m, v, ...)", "aten::batch_norm(x, w, b, m, v, False, 0.1, 1e-5, False)"},
      {"aten::batch_norm(aten::conv2d(x, k, c), w, b, m, v, ...)",
       "aten::batch_norm(aten::conv2d(x, k, c), w, b, m, v, False, 0.1, 1e-5, False)"},
      {"aten::layer_norm(x, n, w, b)", "aten::layer_norm(x, n, w, b)"},
      {"aten::linear(x, w, b)", "aten::linear(x, w, b)"},
      {"aten::matmul(x, aten::t(w))", "aten::matmul(x, aten::t(w))"},
      {"aten::silu(aten::linear(x, w, b))", "aten::silu(aten::linear(x, w, b))"},
      {"aten::mul.Tensor(x, aten::sigmoid(x))", "aten::mul.Tensor(x, aten::sigmoid(x))"},
      {"aten::mean.dim(x, [-1, -2], True)", "aten::mean.dim(x, [-1, -2], True)"},
      {"aten::clamp(x, 0.0, 6.0)", "aten::clamp(x, 0.0, 6.0)"},
      {"aten::hardtanh(x, 0.0, 6.0)", "aten::hardtanh(x, 0.0, 6.0)"},
  };
  for (const auto& [pattern, same] : rewrites) {
    auto net = std::make_shared<Marked>();
    net->eval();
    auto gm = symbolic_trace(net, {x});
    const torch::Tensor before = gm->forward(x);
    const Shapes shapes = propagate_shapes(*gm, {x});
    ReplaceOptions options;
    options.find.definitions = true;
    Shapes known = shapes;
    options.shapes = &known;
    const std::size_t places = find(*gm, pattern, {.definitions = true, .shapes = &known}).size();
    const RewriteReport report = replace_pattern(*gm, pattern, "aten::neg(" + std::string(same) + ")", options);
    EXPECT_EQ(report.applied + report.refused.size(), places) << pattern << report;
    gm->graph().lint();
    gm->recompile();
    for (const Node& node : gm->graph().nodes())
      EXPECT_TRUE(node.has_users() || !node.is(Op::call_function) || node.is_call("torch._assert")) << pattern << node;
    EXPECT_EQ(torch::allclose(gm->forward(x), before), report.applied == 0) << pattern << report;
  }
}

TEST(RewritesAsRead, FixTheModeOfWhatFollowsIt) {
  auto net = std::make_shared<Net>();
  net->eval();
  auto gm = symbolic_trace(net, {torch::rand({2, 3, 6, 6})});
  const torch::Tensor x = torch::rand({3, 3, 8, 8}), before = gm->forward(x);
  const char* replacement =
      "aten::clamp_min(aten::batch_norm(aten::conv2d(x, w, b), s, t, m, v, False, 0.1, 1e-05, False), 0)";
  const char* pattern = "aten::relu(aten::batch_norm(aten::conv2d(x, w, b), s, t, m, v, False, 0.1, 1e-05, _))";
  const RewriteReport report = replace_pattern(*gm, pattern, replacement);
  EXPECT_EQ(report.applied, 1u) << report;
  EXPECT_EQ(report.written_out.size(), 3u);
  gm->recompile();
  EXPECT_TRUE(torch::equal(gm->forward(x), before));
  EXPECT_FALSE(gm->fixed_mode().empty());

  net->train();
  auto training = symbolic_trace(net, {torch::rand({2, 3, 6, 6})});
  const std::string text = print_graph(training->graph());
  const RewriteReport refused = replace_pattern(*training, pattern, replacement);
  EXPECT_EQ(refused.applied, 0u);
  ASSERT_EQ(refused.refused.size(), 1u);
  EXPECT_THAT(refused.refused[0].reason, HasSubstr("call eval() first"));
  EXPECT_EQ(print_graph(training->graph()), text);
  EXPECT_TRUE(training->fixed_mode().empty());
}

TEST(RewritesAsRead, WhatIsRefusedOrFilteredStaysAModule) {
  auto net = std::make_shared<Net>();
  net->eval();
  auto gm = symbolic_trace(net, {torch::rand({2, 3, 6, 6})});
  const std::string text = print_graph(gm->graph());
  ReplaceOptions options;
  options.filters = {[](const Match& match) {
    EXPECT_EQ(match["w"].target(), "fc1.weight");  // the program has it by then
    return false;
  }};
  const RewriteReport report = replace_pattern(*gm, "aten::relu(aten::linear(x, w, b))", "aten::relu(x)", options);
  EXPECT_EQ(report.applied, 0u);
  EXPECT_TRUE(report.written_out.empty());
  EXPECT_EQ(print_graph(gm->graph()), text);
  options.filters = {};
  options.dry_run = true;
  EXPECT_EQ(replace_pattern(*gm, "aten::relu(aten::linear(x, w, b))", "aten::tanh(x)", options).applied, 1u);
  EXPECT_EQ(print_graph(gm->graph()), text);
}

TEST(RewritesAsRead, DriversGoOnUntilNothingFits) {
  auto net = std::make_shared<Net>();
  net->eval();
  auto gm = symbolic_trace(net, {torch::rand({2, 3, 6, 6})});
  const torch::Tensor x = torch::rand({3, 3, 8, 8}), before = gm->forward(x);
  const RuleSet rules = {{.name = "linear",
                          .pattern = "aten::linear(x, w, b)",
                          .replacement = "aten::add.Tensor(aten::matmul(x, aten::t(w)), b)",
                          .promise = Promise::reassociates},
                         {.name = "relu", .pattern = "aten::relu(x)", .replacement = "aten::clamp_min(x, 0)"}};
  const RewriteReport report = rewrite_to_fixed_point(*gm, rules);
  EXPECT_EQ(report.applied, 4u) << report;
  EXPECT_EQ(gm->graph().count(Op::call_function, "aten::clamp_min"), 2u);
  EXPECT_EQ(count(*gm, Op::call_module), 2u);
  gm->recompile();
  EXPECT_TRUE(torch::allclose(gm->forward(x), before, 1e-4, 1e-6));
}

TEST(RewritesAsRead, DriversSayWhatTheyCannotWriteOut) {
  auto net = std::make_shared<Net>();
  auto gm = symbolic_trace(net, {torch::rand({2, 3, 6, 6})});
  const RuleSet rules = {{.name = "norm",
                          .pattern = "aten::batch_norm(x, s, t, m, v, False, 0.1, 1e-05, _)",
                          .replacement = "aten::mul.Tensor(x, s)"}};
  for (const RewriteReport& report : {rewrite_once(*gm, rules), rewrite_to_fixed_point(*gm, rules)}) {
    EXPECT_EQ(report.applied, 0u);
    ASSERT_EQ(report.refused.size(), 1u);
    EXPECT_EQ(report.refused[0].rule, "norm");
    EXPECT_THAT(report.refused[0].reason, HasSubstr("call eval() first"));
  }
}

TEST(RewritesAsRead, ByDefinitions) {
  const auto gm =
      symbolic_trace([](torch::Tensor x) { return torch::neg(x * torch::sigmoid(x)) + torch::hardtanh(x, 0, 6); });
  const torch::Tensor x = torch::randn({5}), before = gm->forward(x);
  ReplaceOptions options;
  options.find.definitions = true;
  const RewriteReport unknown = replace_pattern(*gm, "aten::silu(x)", "aten::silu(x)", options);
  ASSERT_EQ(unknown.refused.size(), 1u);
  EXPECT_THAT(unknown.refused[0].reason, HasSubstr("give the shapes of the inputs"));
  Shapes shapes = propagate_shapes(*gm, std::vector<TensorInfo>{{.dtype = DType::float32, .sizes = {5}}});
  options.shapes = &shapes;
  const RewriteReport report = replace_pattern(*gm, "aten::silu(x)", "aten::silu(x)", options);
  EXPECT_EQ(report.applied, 1u) << report;
  ASSERT_EQ(report.written_out.size(), 1u);
  EXPECT_THAT(report.written_out[0], HasSubstr("by silu"));
  EXPECT_EQ(gm->graph().count(Op::call_function, "aten::silu"), 1u);
  EXPECT_EQ(gm->graph().count(Op::call_function, "aten::sigmoid"), 0u);
  EXPECT_EQ(replace_pattern(*gm, "aten::relu6(x)", "aten::clamp_max(aten::relu(x), 6)", options).applied, 1u);
  gm->graph().lint();
  gm->recompile();
  EXPECT_TRUE(torch::allclose(gm->forward(x), before));
}

TEST(RewritesAsRead, ARuleThatFindsItsOwnResultByDefinitionsIsRefused) {
  const auto gm = symbolic_trace([](torch::Tensor x) { return torch::silu(x); });
  const RuleSet rules = {
      {.name = "spell-out", .pattern = "aten::silu(x)", .replacement = "aten::mul.Tensor(x, aten::sigmoid(x))"}};
  DriverOptions options;
  options.find.definitions = true;
  EXPECT_THAT(error_of([&] { rewrite_to_fixed_point(*gm, rules, options); }),
              HasSubstr("spell-out finds its own result by silu"));
  EXPECT_EQ(rewrite_to_fixed_point(*gm, rules).applied, 1u);
}

TEST(RewritesAsRead, AWriteOfAnotherTypeIsLeftAlone) {
  const auto gm = symbolic_trace([](torch::Tensor x, torch::Tensor y) { return torch::sin(x).add_(y); });
  EXPECT_EQ(find(*gm, "aten::add.Tensor(x, y)").size(), 1u);
  const RewriteReport report = replace_pattern(*gm, "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, aten::neg(y))");
  EXPECT_EQ(report.applied, 0u);
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_THAT(report.refused[0].reason, HasSubstr("give the shapes of the inputs"));
  const torch::Tensor half = torch::rand({2}).to(torch::kHalf), whole = torch::rand({2});
  const torch::Tensor before = gm->forward(half.to(torch::kDouble), whole);
  Shapes shapes = propagate_shapes(
      *gm, std::vector<TensorInfo>{{.dtype = DType::float64, .sizes = {2}}, {.dtype = DType::float32, .sizes = {2}}});
  ReplaceOptions options;
  options.shapes = &shapes;
  EXPECT_EQ(replace_pattern(*gm, "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, aten::neg(y))", options).applied, 0u);
  shapes = propagate_shapes(
      *gm, std::vector<TensorInfo>{{.dtype = DType::float32, .sizes = {2}}, {.dtype = DType::float32, .sizes = {2}}});
  EXPECT_EQ(replace_pattern(*gm, "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, aten::neg(y))", options).applied, 1u);
  gm->recompile();
  EXPECT_TRUE(torch::allclose(gm->forward(half.to(torch::kFloat), whole), before.to(torch::kFloat)));
}

}  // namespace fx::rewrites_as_read_test
