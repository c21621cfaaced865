#include <fxgraph/rewriter/driver.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/pass_manager.h>
#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"
#include "tests/support/scalar_interpreter.h"
#include "tests/support/short_graph.h"

namespace fx::driver_test {

using testing::calls_of;
using ::testing::ElementsAre;
using testing::error_of;
using testing::graph_of;
using ::testing::HasSubstr;
using testing::run_scalars;

RuleSet simplifications() {
  return {
      {.name = "relu-relu", .pattern = "aten::relu(r: aten::relu(x))", .replacement = "aten::relu(x)"},
      {.name = "neg-neg", .pattern = "aten::neg(aten::neg(x))", .replacement = "x"},
      {.name = "mul-two", .pattern = "aten::mul.Scalar(x, 2)", .replacement = "aten::add.Tensor(x, x)"},
      {.name = "add-neg",
       .pattern = "commutative(aten::add.Tensor(x, aten::neg(y)))",
       .replacement = "aten::sub.Tensor(x, y)"},
      {.name = "sub-neg", .pattern = "aten::sub.Tensor(x, aten::neg(y))", .replacement = "aten::add.Tensor(x, y)"},
      {.name = "neg-sub", .pattern = "aten::neg(aten::sub.Tensor(x, y))", .replacement = "aten::sub.Tensor(y, x)"},
      {.name = "relu-sigmoid", .pattern = "aten::relu(s: aten::sigmoid(x))", .replacement = "aten::sigmoid(x)"},
  };
}

TEST(FixedPoint, FollowsWhatARewriteMakesPossible) {
  Graph graph = graph_of(
      "a = aten::neg(%x)\nb = aten::neg(%a)\nc = aten::neg(%b)\nd = aten::neg(%c)\nr = aten::relu(%d)\nq = "
      "aten::relu(%r)\nreturn q");
  const RewriteReport report = rewrite_to_fixed_point(graph, simplifications());
  EXPECT_EQ(calls_of(graph), "relu = aten::relu(x)\nreturn relu\n");
  EXPECT_EQ(report.applied, 3u);
  EXPECT_EQ(report.stop, RewriteStop::fixed_point);
  EXPECT_EQ(report.rules[1].applied, 2u);
}

TEST(FixedPoint, AValueThatLosesAUseBecomesInner) {
  // relu_1 stands in the way of neg-neg until relu-relu has taken its use away.
  Graph graph =
      graph_of("a = aten::neg(%x)\nb = aten::relu(%a)\nc = aten::neg(%a)\nd = aten::mul.Scalar(%b, 3)\nreturn c");
  RuleSet rules = {{.name = "drop", .pattern = "aten::mul.Scalar(aten::relu(x), 3)", .replacement = "0"},
                   {.name = "neg-neg", .pattern = "aten::neg(aten::neg(x))", .replacement = "aten::sin(x)"}};
  const RewriteReport report = rewrite_to_fixed_point(graph, rules);
  EXPECT_EQ(report.applied, 2u) << report;
  EXPECT_EQ(calls_of(graph), "sin = aten::sin(x)\nreturn sin\n");
  EXPECT_TRUE(report.refused.empty()) << report;
}

TEST(FixedPoint, AConditionSaysWhyNot) {
  Graph graph = graph_of("a = aten::mul.Scalar(%x, 0)\nb = aten::mul.Scalar(%a, 2)\nc = aten::neg(%b)\nreturn c");
  const RuleSet rules = {{.name = "to-div",
                          .pattern = "aten::mul.Scalar(x, c: literal)",
                          .when = [](const Match& m) -> Decision {
                            if (m.literal("c") == 0) return refuse("its factor is zero");
                            return m.literal("c") > 1;
                          },
                          .replacement = "aten::div.Scalar(x, c)"}};
  const RewriteReport report = rewrite_to_fixed_point(graph, rules);
  EXPECT_EQ(report.applied, 1u);
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.refused[0].node + ": " + report.refused[0].reason, "a: its factor is zero");
  EXPECT_EQ(report.rules[0].refused, 1u) << "however often it was tried";
}

TEST(FixedPoint, ADryRunReportsAndChangesNothing) {
  Graph graph = graph_of("a = aten::neg(%x)\nb = aten::neg(%a)\nc = aten::sin(%b)\nreturn c");
  const std::string before = print_graph(graph);
  EXPECT_EQ(rewrite_to_fixed_point(graph, simplifications(), {.dry_run = true}).applied, 1u);
  EXPECT_EQ(print_graph(graph), before);
}

TEST(FixedPoint, ConditionsKnowShapesAndNewValuesInheritThem) {
  Graph graph = graph_of("a = aten::neg(%x)\nb = aten::sin(%a)\nreturn b");
  Shapes shapes;
  for (const Node& node : graph.nodes()) shapes[node] = TensorInfo{.dtype = DType::float16, .sizes = {2, 3}};
  const auto is_half = [](const Match& m) -> Decision { return m.info("x") && m.info("x")->dtype == DType::float16; };
  const RuleSet rules = {
      {.name = "sin", .pattern = "aten::sin(x)", .when = is_half, .replacement = "aten::cos(x)"},
      {.name = "neg", .pattern = "aten::neg(x)", .when = is_half, .replacement = "aten::abs(x)"},
      {.name = "cos", .pattern = "aten::cos(x)", .when = is_half, .replacement = "aten::tan(x)"},
  };
  EXPECT_EQ(rewrite_to_fixed_point(graph, rules).applied, 0u) << "nothing is known without shapes";
  EXPECT_EQ(rewrite_to_fixed_point(graph, rules, {.shapes = &shapes}).applied, 3u);
  EXPECT_EQ(calls_of(graph), "abs_1 = aten::abs(x)\ntan = aten::tan(abs_1)\nreturn tan\n");
}

TEST(FixedPoint, TenThousandNestedTransposes) {
  Graph graph;
  Node* at = &graph.call_function("aten::relu", {graph.placeholder("x")});
  for (int i = 0; i < 10000; ++i) at = &graph.call_function("aten::transpose.int", {at, 0, 1});
  graph.output(graph.call_function("aten::relu", {at}));
  const RuleSet rules = {{.name = "transposes",
                          .pattern = "aten::transpose.int(aten::transpose.int(x, a: int, b: int), a, b)",
                          .replacement = "x"}};
  const RewriteReport report = rewrite_to_fixed_point(graph, rules);
  EXPECT_EQ(report.applied, 5000u);
  EXPECT_EQ(graph.size(), 4u);
  EXPECT_LE(report.rules[0].tried, 40000u) << "only what changed is visited again";
}

TEST(FixedPoint, LimitsStopRulesThatFight) {
  Graph graph = testing::chain(4);
  const std::string before = print_graph(graph);
  const RuleSet rules = {{.name = "there", .pattern = "aten::relu(x)", .replacement = "aten::clamp_min(x, 0)"},
                         {.name = "back", .pattern = "aten::clamp_min(x, 0)", .replacement = "aten::relu(x)"}};
  const RewriteReport report = rewrite_to_fixed_point(graph, rules, {.max_rewrites = 100});
  EXPECT_EQ(report.applied, 100u);
  EXPECT_EQ(report.stop, RewriteStop::max_rewrites);
  std::ostringstream text;
  text << report;
  EXPECT_EQ(text.str(), "applied 100; stopped by the limit on rewrites");
  graph.lint();
}

TEST(FixedPoint, AnExceptionUndoesEverything) {
  Graph graph = testing::chain(20);
  const std::string before = print_graph(graph);
  int left = 15;
  RuleSet rules;
  rules.add({.name = "fails", .pattern = "aten::relu(x)", .replacement = [&](const Match& m, Rewriter& r) -> Node& {
               if (--left == 0) throw std::runtime_error("no");
               return r.call_function("aten::sigmoid", {m["x"]});
             }});
  EXPECT_THROW(rewrite_to_fixed_point(graph, rules), std::runtime_error);
  EXPECT_EQ(print_graph(graph), before);
}

TEST(FixedPoint, ConditionsMayReadMoreThanTheirMatch) {
  // The condition of the first rule holds only after the second has been applied, somewhere else.
  Graph graph = graph_of("a = aten::relu(%x)\nb = aten::sin(%x)\nc = aten::add.Tensor(%a, %b)\nreturn c");
  RuleSet rules;
  rules.add({.name = "later",
             .pattern = "aten::relu(x)",
             .when = [&](const Match& m) { return m.anchor().graph().count(Op::call_function, "aten::sin") == 0; },
             .replacement = "aten::sigmoid(x)"});
  rules.add({.name = "sooner", .pattern = "aten::sin(x)", .replacement = "aten::neg(x)"});
  EXPECT_EQ(rewrite_to_fixed_point(graph, rules).applied, 2u);
  EXPECT_THAT(calls_of(graph), HasSubstr("sigmoid"));
}

/// After a fixed point no rule applies anywhere, and the numbers are what they were.
TEST(FixedPoint, OnlyRulesThatReadMoreAreTriedOnceMore) {
  Graph graph = testing::chain(100);
  Node& result = graph.output_node()->arg(0).node();
  const auto scope = graph.inserting_before(*graph.output_node());
  graph.output_node()->set_args({graph.call_function("aten::neg", {result})});
  const auto always = [](const Match&) { return true; };
  const RewriteReport report = rewrite_to_fixed_point(
      graph, RuleSet{{.name = "near-miss", .pattern = "aten::relu(aten::add.Tensor(x, 1))", .replacement = "x"},
                     {.name = "condition", .pattern = "aten::neg(x)", .when = always, .replacement = "aten::sin(x)"},
                     {.name = "far", .pattern = "aten::sin(~aten::neg(x))", .replacement = "x"}});
  EXPECT_EQ(report.applied, 1u);
  EXPECT_EQ(report.rules[0].tried, 100u);
  EXPECT_EQ(report.rules[1].tried, 1u);
  EXPECT_EQ(report.stop, RewriteStop::fixed_point);
}

// What an edit may have made possible is found again whichever alternative leads there, and nothing else is tried.
TEST(FixedPoint, AlternativesAreFollowedFromBelowAndFromAbove) {
  Graph graph;
  Node* at = &graph.placeholder("x");
  for (int i = 0; i < 200; ++i) at = &graph.call_function("aten::sin", {at});
  at = &graph.call_function("aten::abs", {at});
  for (int i = 0; i < 50; ++i) at = &graph.call_function(i % 2 ? "aten::relu" : "aten::neg", {at});
  graph.output(graph.call_function("aten::cos", {at}));
  const RuleSet rules = {
      {.name = "up", .pattern = "(aten::relu(a: aten::abs(x)) | aten::neg(a))", .replacement = "a"},
      {.name = "down", .pattern = "aten::cos((aten::abs(x) | aten::tan(x)))", .replacement = "aten::tan(x)"},
      {.name = "away", .pattern = "aten::tan(!aten::sin(aten::sin(y)))", .replacement = "aten::erf(y)"}};
  DriverOptions options;
  options.allow_output_aliases = true;
  const RewriteReport report = rewrite_to_fixed_point(graph, {rules[0], rules[1]}, options);
  EXPECT_EQ(report.rules[0].applied, 50u) << report;
  EXPECT_EQ(report.rules[1].applied, 1u) << report;
  EXPECT_LE(report.rules[0].tried, 250u) << "only what changed is visited again";
}

TEST(FixedPoint, RandomGraphs) {
  const RuleSet rules = simplifications();
  std::size_t applied = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    testing::RandomGraphOptions options;
    options.nodes = 5 + seed % 60;
    options.shape = static_cast<testing::Shape>(seed % 4);
    options.vocabulary = &testing::pointwise_vocabulary();
    Graph graph = testing::random_graph(seed, options);
    const auto before = run_scalars(graph, {1, -2, 3});
    const std::string text = print_graph(graph);
    Rewriter rewriter(graph);
    const RewriteReport report = rewrite_to_fixed_point(rewriter, rules, {.allow_output_aliases = true});
    applied += report.applied;
    ASSERT_TRUE(graph.check().empty());
    const auto after = run_scalars(graph, {1, -2, 3});
    ASSERT_EQ(before.outputs.size(), after.outputs.size());
    for (std::size_t i = 0; i < after.outputs.size(); ++i)
      ASSERT_DOUBLE_EQ(before.outputs[i] + 0.0, after.outputs[i] + 0.0) << "seed " << seed;
    Graph again = graph.clone();
    const RewriteReport second = rewrite_once(again, rules, {.allow_output_aliases = true});
    ASSERT_EQ(second.applied, 0u) << "seed " << seed << "\n" << second << "\n" << text << print_graph(graph);
    rewriter.rollback();
    ASSERT_EQ(print_graph(graph), text);
  }
  EXPECT_GT(applied, 4000u);
}

TEST(Once, RulesDoNotSeeEachOthersResults) {
  Graph graph = graph_of(
      "a = aten::neg(%x)\nb = aten::neg(%a)\nc = aten::neg(%b)\nd = aten::neg(%c)\nr = aten::relu(%d)\nq = "
      "aten::relu(%r)\nreturn q");
  const RewriteReport report = rewrite_once(graph, simplifications());
  EXPECT_EQ(report.applied, 3u);
  EXPECT_EQ(calls_of(graph), "relu = aten::relu(x)\nreturn relu\n");
  Graph two = graph_of("a = aten::mul.Scalar(%x, 2)\nreturn a");
  const RuleSet rules = {{.name = "mul", .pattern = "aten::mul.Scalar(x, 2)", .replacement = "aten::add.Tensor(x, x)"},
                         {.name = "add", .pattern = "aten::add.Tensor(x, y)", .replacement = "aten::neg(x)"}};
  EXPECT_EQ(rewrite_once(two, rules).applied, 1u);
  EXPECT_EQ(calls_of(two), "add = aten::add.Tensor(x, x)\nreturn add\n");
}

TEST(Once, TheRuleThatComesFirstWins) {
  Graph graph = graph_of("a = aten::relu(%x)\nreturn a");
  const RuleSet rules = {{.name = "first",
                          .pattern = "aten::relu(x)",
                          .when = [](const Match& m) { return m.has("x"); },
                          .replacement = "aten::neg(x)"},
                         {.name = "second", .pattern = "aten::relu(x)", .replacement = "aten::sin(x)"}};
  EXPECT_EQ(rewrite_once(graph, rules).applied, 1u);
  EXPECT_EQ(calls_of(graph), "neg = aten::neg(x)\nreturn neg\n");
}

// ── Rule sets ────────────────────────────────────────────────────────────────────────────────────────────────────────

std::vector<std::string> errors_of(const RuleSet& rules) {
  std::vector<std::string> texts;
  for (const RuleProblem& problem : rules.check()) {
    if (problem.error) texts.push_back(problem.rule + ": " + problem.message);
  }
  return texts;
}

TEST(RuleSets, RulesThatAskForShapesOrTypesShadowNothing) {
  for (const char* first : {"aten::relu(x: f32)", "aten::relu(call_module<Conv2d>(x))", "aten::relu(x.uses(1, 1))"}) {
    for (const char* second : {"aten::relu(aten::neg(x))", "aten::relu(x)"}) {
      const RuleSet rules = {{.name = "first", .pattern = first, .replacement = "aten::sigmoid(x)"},
                             {.name = "second", .pattern = second, .replacement = "aten::sigmoid(x)"}};
      EXPECT_TRUE(rules.check().empty()) << first << second;
    }
  }
}

TEST(RuleSets, GoodRulesHaveNoProblems) { EXPECT_TRUE(simplifications().check().empty()); }

TEST(RuleSets, ProblemsAreFoundBeforeTheyHappen) {
  EXPECT_THAT(errors_of({{.name = "a", .pattern = "aten::relu(x)", .replacement = "aten::neg(x)"},
                         {.name = "a", .pattern = "aten::sin(x)", .replacement = "aten::neg(x)"}}),
              ElementsAre("a: rules 0 and 1 have this name"));
  EXPECT_THAT(errors_of({{.name = "unbound", .pattern = "aten::relu(x)", .replacement = "aten::add.Tensor(x, y)"}}),
              ElementsAre("unbound: the replacement takes 'y', which the pattern does not bind; it binds x"));
  EXPECT_THAT(errors_of({{.name = "results", .pattern = "aten::relu(x)", .replacement = "aten::neg(x), x"}}),
              ElementsAre("results: the pattern returns 1 values, the replacement 2"));
  EXPECT_THAT(errors_of({{.name = "again", .pattern = "aten::relu(x)", .replacement = "aten::neg(aten::relu(x))"}}),
              ElementsAre("again: its replacement contains its own pattern, at relu: to a fixed point it would never "
                          "end; say may_repeat if that is meant"));
  EXPECT_THAT(errors_of({{.name = "wide", .pattern = "aten::relu(x)", .replacement = "aten::neg(x)"},
                         {.name = "same", .pattern = "aten::relu(x)", .replacement = "aten::sin(x)"}}),
              ElementsAre("same: its pattern is that of 'wide', which comes first"));
  EXPECT_THAT(errors_of({{.name = "wide", .pattern = "aten::relu(x)", .replacement = "aten::neg(x)"},
                         {.name = "narrow", .pattern = "aten::relu(aten::sin(y))", .replacement = "aten::sin(y)"}}),
              ElementsAre("narrow: it can never apply: 'wide', which comes first, matches wherever it does"));
  EXPECT_THAT(errors_of({{.name = "", .pattern = "aten::relu(x)", .replacement = "x"},
                         {.name = "", .pattern = "aten::sin(x)", .replacement = "x"},
                         {.name = "named", .pattern = "aten::abs(x)", .replacement = "x"}}),
              ElementsAre("rule 0: it has no name", "rule 1: it has no name"));
  EXPECT_THROW(
      rewrite_once(*std::make_unique<Graph>(), RuleSet{{.name = "", .pattern = "aten::relu(x)", .replacement = "x"}}),
      Error);
}

// Whether the rules can be run at all does not depend on what the graph happens to have.
TEST(RuleSets, WhatARuleMustKnowIsAskedForBeforehand) {
  const std::pair<const char*, const char*> kWants[] = {
      {"aten::relu(x).is(f32)", "no shapes are known"},
      {"aten::relu(x: f32[N, N])", "no shapes are known"},
      {"call_module<ReLU>(x)", "types of modules, and none are known"},
  };
  for (const auto& [pattern, wanted] : kWants) {
    const RuleSet rules = {{.name = "usual", .pattern = "aten::sin(x)", .replacement = "aten::cos(x)"},
                           {.name = "asks", .pattern = pattern, .replacement = "aten::neg(x)"}};
    for (const char* call : {"aten::relu(%x)", "call_module[target=m](%x)", "aten::sin(%x)", "aten::erf(%x)"}) {
      Graph graph = graph_of("a = " + std::string(call) + "\nreturn a");
      EXPECT_THAT(error_of([&] { rewrite_once(graph, rules); }), HasSubstr(wanted)) << pattern << " " << call;
      EXPECT_THAT(error_of([&] { rewrite_to_fixed_point(graph, rules); }), HasSubstr(wanted)) << pattern << " " << call;
    }
  }
}

TEST(RuleSets, AGoodSetIsCheckedOnce) {
  std::size_t asked = 0;
  const Predicates predicates = {{"no", [&](const Argument&) { return ++asked, false; }}};
  RuleSet set{
      {.name = "a", .pattern = Pattern("aten::relu(x.if(no))", predicates), .replacement = "aten::relu(aten::neg(x))"}};
  set.validate();
  EXPECT_EQ(asked, 1u) << "whether the replacement contains the pattern";
  set.validate();
  RuleSet(set).validate();
  EXPECT_EQ(asked, 1u);
  set.add({.name = "b", .pattern = "aten::sin(x)", .replacement = "aten::neg(x)"});
  set.validate();
  EXPECT_GT(asked, 1u);
}

TEST(RuleSets, RulesAreChosenByName) {
  const RuleSet rules = simplifications();
  EXPECT_EQ(rules.only({"neg-neg", "relu-relu"}).size(), 2u);
  EXPECT_THROW(rules.only({"no-such"}), Error);
}

// ── Passes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Passes, RunInOrderAndSayWhatChanged) {
  Graph graph = graph_of("a = aten::neg(%x)\nb = aten::neg(%a)\nr = aten::relu(%b)\nd = aten::sin(%x)\nreturn r");
  PassManager passes;
  passes.add("dead-code", [](Graph& g) { eliminate_dead_code(g); }, {.after = {"simplify"}});
  passes.add("simplify", [](Graph& g) { rewrite_to_fixed_point(g, simplifications()); });
  passes.add("nothing", [](Graph&) {});
  EXPECT_THAT(passes.order(), ElementsAre("simplify", "dead-code", "nothing"));
  const PipelineReport report = passes.run(graph);
  ASSERT_EQ(report.passes.size(), 3u);
  EXPECT_TRUE(report.changed());
  EXPECT_EQ(report.passes[1].nodes_after, 3u);
  EXPECT_FALSE(report.passes[2].changed);
  std::ostringstream text;
  text << report;
  EXPECT_THAT(text.str(), HasSubstr("simplify   6 -> 4 nodes"));
}

TEST(Passes, RepeatUntilNothingChanges) {
  Graph graph = graph_of(
      "a = aten::neg(%x)\nb = aten::neg(%a)\nc = aten::neg(%b)\nd = aten::neg(%c)\nr = aten::relu(%d)\nreturn r");
  PassManager passes;
  std::size_t rounds = 0;
  passes.add_until_stable("loop", {{"one", [&](Graph& g) {
                                      ++rounds;
                                      rewrite_once(g, simplifications(), {.max_rewrites = 1});
                                    }}});
  passes.run(graph);
  EXPECT_EQ(rounds, 3u);
}

TEST(Passes, ConstraintsThatCannotBeMetAndErrorsNameThePass) {
  PassManager passes;
  passes.add("a", [](Graph&) {}, {.after = {"b"}});
  passes.add("b", [](Graph&) {}, {.after = {"a"}});
  EXPECT_THROW(passes.order(), Error);
  PassManager bad;
  bad.add("breaks", [](Graph& g) { g.nodes().back().prepend(*g.placeholders()[0]); });
  Graph graph = graph_of("a = aten::neg(%x)\nreturn a");
  try {
    bad.run(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("pass breaks: "));
  }
}

TEST(Rules, AConditionInCodeLeavesPlacesToALaterRule) {
  const match::Expr small = match::op("aten::mul.Scalar", match::any("x"), match::lit_any("c").where("<", 3));
  const match::Expr all = match::op("aten::mul.Scalar", match::any("x"), match::lit_any("c"));
  const RuleSet narrow = {{.name = "small", .pattern = small, .replacement = "aten::neg(x)"},
                          {.name = "all", .pattern = all, .replacement = "aten::relu(x)"}};
  EXPECT_THAT(errors_of(narrow), ElementsAre());
  const RuleSet wide = {{.name = "all", .pattern = all, .replacement = "aten::neg(x)"},
                        {.name = "again", .pattern = all, .replacement = "aten::relu(x)"}};
  EXPECT_EQ(errors_of(wide).size(), 1u);
  Graph graph = graph_of("a = aten::mul.Scalar(%x, 2)\nb = aten::mul.Scalar(%a, 4)\nreturn b");
  EXPECT_EQ(rewrite_to_fixed_point(graph, narrow).applied, 2u);
  EXPECT_EQ(calls_of(graph), "neg = aten::neg(x)\nrelu = aten::relu(neg)\nreturn relu\n");
}

}  // namespace fx::driver_test
