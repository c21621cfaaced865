// The driver to a fixed point, with rules that are patterns of every form.
#include <gtest/gtest.h>

#include <fxgraph/rewriter/driver.h>
#include <fxgraph/text/print.h>
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"
#include "tests/support/short_graph.h"

namespace fx::fixed_point_random_test {

using testing::graph_of;

/// Rules of every form of pattern, some with conditions on what is anywhere in the graph: where the driver says that a
/// fixed point is reached, none of them applies.
TEST(FixedPoint, NothingAppliesAfterwardsWhateverThePatterns) {
  std::size_t applied = 0, reached = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    testing::RandomGraphOptions options;
    options.nodes = 4 + seed % 20;
    options.shape = static_cast<testing::Shape>(seed % 4);
    options.vocabulary = seed % 3 ? &testing::copying_vocabulary() : &testing::pointwise_vocabulary();
    options.typed_percent = 0;
    Graph graph = testing::random_graph(seed, options);
    const std::string text = print_graph(graph);
    RuleSet rules;
    constexpr const char* kReplacements[] = {"aten::neg(x)", "x", "aten::relu(x)", "aten::sigmoid(aten::relu(x))",
                                             "aten::clone(x)"};
    for (std::uint64_t i = 0; i < 4; ++i) {
      const Pattern pattern = testing::random_pattern(seed * 4 + i, {.depth = 1 + static_cast<int>(i % 3),
                                                                     .several_results = i == 3,
                                                                     .constructs = seed % 2 == 0,
                                                                     .conditions = true});
      RuleSet more = rules;
      more.add({.name = std::to_string(i),
                .pattern = pattern,
                .replacement =
                    std::string(kReplacements[(seed + i) % 5]) + (pattern.num_outputs() == 2 ? ", aten::abs(x)" : ""),
                .may_repeat = true});
      if (more.check().empty()) rules = more;  // it binds an x, and is not in the way of another
    }
    const DriverOptions how{.allow_output_aliases = true, .max_rewrites = 60};
    const RewriteReport report = rewrite_to_fixed_point(graph, rules, how);
    ASSERT_TRUE(graph.check().empty());
    applied += report.applied;
    // Of several results the driver tries one way at each place: where that was refused another may be left.
    const bool several = rules.size() > 0 && rules[rules.size() - 1].pattern.num_outputs() > 1;
    if (report.stop != RewriteStop::fixed_point || (several && !report.refused.empty())) continue;
    ++reached;
    Graph again = graph.clone();
    const RewriteReport second = rewrite_once(again, rules, how);
    std::string all;
    for (std::size_t i = 0; i < rules.size(); ++i) all += rules[i].pattern.str() + "\n";
    ASSERT_EQ(second.applied, 0u) << "seed " << seed << "\n" << all << text << print_graph(graph) << print_graph(again);
  }
  EXPECT_GT(reached, 100u);
  EXPECT_GT(applied, 1000u);
}

/// Parts of a pattern that hang together by nothing: each may come to fit far from the other.
TEST(FixedPoint, PartsThatHangTogetherByNothing) {
  const Rule pair{.name = "pair",
                  .pattern = "a = aten::relu(x)\nb = aten::neg(aten::abs(y))\nreturn a, b",
                  .replacement = "aten::sigmoid(x), aten::exp(y)"};
  const Rule later{.name = "later", .pattern = "aten::tanh(x)", .replacement = "aten::abs(x)"};
  for (const int relus : {1, 2, 3, 9}) {
    std::string body, results;
    for (int i = 0; i < 9; ++i) {
      const std::string n = std::to_string(i);
      body += "t" + n + " = aten::tanh(%x)\nn" + n + " = aten::neg(%t" + n + ")\nk" + n + " = aten::abs(%x)\n";
      if (i < relus) body += "r" + n + " = aten::relu(%x)\n";
      results += "n" + n + ", k" + n + ", " + (i < relus ? "r" + n + ", " : "");
    }
    Graph graph = graph_of(body + "return (" + results + "0)");
    const RewriteReport report = rewrite_to_fixed_point(graph, {pair, later}, {.allow_output_aliases = true});
    EXPECT_EQ(report.stop, RewriteStop::fixed_point);
    EXPECT_EQ(graph.count(Op::call_function, "aten::relu"), 0u) << relus;
    EXPECT_EQ(graph.count(Op::call_function, "aten::exp"), static_cast<std::size_t>(relus));
    EXPECT_TRUE(graph.check().empty());
  }
}

TEST(FixedPoint, WhatLeavesTheMatchIsNoRefusalWhereAnotherWayFits) {
  Graph graph = graph_of("p = aten::relu(%x)\nq = aten::relu(%x)\ns = aten::add.Tensor(%p, %q)\nreturn (s, p)");
  for (const bool accepted : {false, true}) {
    const Rule rule{.name = "rule",
                    .pattern = "commutative(aten::add.Tensor(aten::relu(a), b))",
                    .when = [=](const Match&) { return accepted; },
                    .replacement = "aten::sub.Tensor(a, b)"};
    const RewriteReport report = rewrite_to_fixed_point(graph, {rule});
    EXPECT_TRUE(report.refused.empty()) << report;
    EXPECT_EQ(report.applied, accepted ? 1u : 0u);
  }
}

/// Whether a value is constant is asked anew once something was rewritten.
TEST(FixedPoint, WhatIsHandedOutNoMoreIsConstant) {
  Graph graph = graph_of("w = get_attr[target=w]()\nn = aten::neg(%w)\nt = aten::t(%w)\nreturn (n, t)");
  const RuleSet rules = {{.name = "constant", .pattern = "aten::neg(k: constant)", .replacement = "aten::abs(k)"},
                         {.name = "copy", .pattern = "aten::t(x)", .replacement = "aten::clone(x)"}};
  EXPECT_EQ(rewrite_to_fixed_point(graph, rules, {.allow_output_aliases = true}).applied, 2u) << print_graph(graph);
}

}  // namespace fx::fixed_point_random_test
