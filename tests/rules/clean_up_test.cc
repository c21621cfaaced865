// The rules of rewriter/rules/simplify/clean_up: what is computed twice or for nothing goes, from graph and module
// tree.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fxgraph/rewriter/rules/optimize.h>

namespace fx::rules {
namespace {

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

}  // namespace
}  // namespace fx::rules
