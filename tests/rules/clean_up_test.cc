// The rules of rewriter/rules/simplify/clean_up: what is computed twice or for nothing goes, from graph and module
// tree.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/text/parse.h>

namespace fx::rules::clean_up_test {

RuleOutcome run_rule(const std::string& rule, GraphModule& module) {
  return optimize(module, {.rules = {rule}}).rules[0];
}

TEST(CleanUp, DeadNodesTakeTheirTensorsAlong) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& kept = graph.get_attr("kept");
  Node& unused = graph.get_attr("unused");
  graph.call_function("aten::add.Tensor", {x, unused});
  graph.output(graph.call_function("aten::mul.Tensor", {x, kept}));
  GraphModule module({{"kept", at::full({2}, 3.0)}, {"unused", at::ones({2})}}, std::move(graph));
  EXPECT_EQ(run_rule("dead-code", module).applied, 2u);
  EXPECT_FALSE(module.find_attribute("unused").defined());
  EXPECT_TRUE(at::equal(module.forward(at::ones({2})), at::full({2}, 3.0)));
}

TEST(CleanUp, WritesStay) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& state = graph.get_attr("state");
  graph.call_function("aten::add_.Tensor", {state, x});
  graph.output(x);
  GraphModule module({{"state", at::zeros({2})}}, std::move(graph));
  EXPECT_EQ(run_rule("dead-code", module).applied, 0u);
  module.forward(at::ones({2}));
  EXPECT_TRUE(at::equal(module.attribute("state"), at::ones({2})));
}

TEST(CleanUp, EqualCallsAreMadeOnce) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::sin", {x});
  Node& b = graph.call_function("aten::sin", {x});
  graph.output(graph.call_function("aten::add.Tensor", {a, b}));
  GraphModule module(std::move(graph));
  EXPECT_EQ(run_rule("common-subexpression", module).applied, 1u);
  EXPECT_TRUE(at::allclose(module.forward(at::ones({2})), 2 * at::sin(at::ones({2}))));
}

TEST(CleanUp, AModuleUnderTwoPathsKeepsWhatEitherNames) {
  class Root : public torch::nn::Module {
  } root;
  const torch::nn::Sequential layers(torch::nn::Linear(2, 2), torch::nn::Linear(2, 2));
  for (const char* path : {"first", "second"}) root.register_module(path, layers.ptr());
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& kept = graph.call_module("first", {x});
  graph.call_module("second", {kept});
  graph.output(kept);
  GraphModule module(root, std::move(graph));
  const at::Tensor before = module.forward(at::ones({2, 2}));
  optimize(module, {.rules = {"inline-modules", "dead-code"}});
  EXPECT_TRUE(at::equal(module.forward(at::ones({2, 2})), before));
}

TEST(CleanUp, AModuleOfWhichNothingIsKnownMayReturnItsInput) {
  class Root : public torch::nn::Module {
  } root;
  root.register_buffer("w", at::ones({2}));
  root.register_module("relu", torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().inplace(true)).ptr());  // training
  Graph graph;
  graph.placeholder("x");
  Node& called = graph.call_module("relu", {graph.get_attr("w")});
  graph.output(graph.call_function("aten::clone", {called}));
  GraphModule module(root, std::move(graph));
  optimize(module, {});
  module.forward(at::ones({2})).zero_();
  EXPECT_TRUE(at::equal(module.attribute("w"), at::ones({2})));
}

// ── Graphs that are arguments ────────────────────────────────────────────────────────────────────────────────────────

constexpr const char* kBranch = R"(graph():
%x = placeholder[target=x]
%yes = get_attr[target=yes]
%no = get_attr[target=no]
%w = get_attr[target=w]
%c = call_function[target=torch.ops.higher_order.cond.default](args = (True, %yes, %no, (%w,)))
%r = call_function[target=torch.ops.aten.sub.Scalar](args = (%c, 0))
return r)";

std::shared_ptr<GraphModule> with_branches(const char* branch) {
  class Root : public torch::nn::Module {
  } root;
  root.register_buffer("w", at::ones({2}));
  const GraphModule::Attributes attributes = {{"count", at::zeros({})}};
  for (const char* path : {"yes", "no"})
    root.register_module(path, std::make_shared<GraphModule>(attributes, parse_graph(branch)));
  return std::make_shared<GraphModule>(root, parse_graph(kBranch));
}

TEST(CleanUp, ABranchMayReturnWhatItIsGiven) {
  const auto module = with_branches("graph():\n%x = placeholder[target=x]\nreturn x");
  optimize(*module, {.inputs = {TensorInfo{.sizes = {2}}}});
  module->run({at::ones({2})}).toTensor().zero_();
  EXPECT_TRUE(at::equal(module->attribute("w"), at::ones({2})));
}

TEST(CleanUp, ShapesAreFoundWithoutATrace) {
  const auto module = with_branches(R"(graph():
%x = placeholder[target=x]
%n = get_attr[target=count]
%a = call_function[target=torch.ops.aten.add_.Scalar](args = (%n, 1))
%y = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, %n))
return y)");
  optimize(*module, {.inputs = {TensorInfo{.sizes = {2}}}});
  EXPECT_EQ(module->attribute("yes.count").item<double>(), 0);
  EXPECT_TRUE(at::equal(module->run({at::ones({2})}).toTensor(), at::ones({2})));
}

}  // namespace fx::rules::clean_up_test
