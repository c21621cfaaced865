// What torch.fx's matcher and rewriter cannot do or get wrong, as its users report it; here each is right. The number
// is that of the report where there is one. What is about writes, storage, places and ways back into a match is in
// legality_test.cc; overlaps, results that share no node and what costs how much in tests/matchers/find_test.cc; what a
// function cannot say, sets, expressions, choices, repetition, predicates, in tests/matchers/expr_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"
#include "tests/support/short_graph.h"

namespace fx::limits_test {

using testing::calls_of;
using testing::error_of;
using testing::graph_of;
using ::testing::HasSubstr;

// ── What a pattern can say ───────────────────────────────────────────────────────────────────────────────────────────

TEST(Limits, InputsStandForLiteralsToo) {  // #68393, #85456, #97683
  Graph graph = graph_of("d = aten::div.Tensor(%x, 4.0)\ne = aten::div.Tensor(%d, %x)\nreturn e");
  const Graph pattern = graph_of("d = aten::div.Tensor(%x, %c)\nreturn d", "x c");
  const Graph replacement = graph_of("m = aten::mul.Tensor(%c, %x)\nreturn m", "x c");
  EXPECT_EQ(replace_pattern(graph, pattern, replacement).applied, 2u);
  EXPECT_EQ(calls_of(graph), "m = aten::mul.Tensor(4.0, x)\nm_1 = aten::mul.Tensor(x, m)\nreturn m_1\n");
}

TEST(Limits, DefaultsNeedNotBeWritten) {  // #99431, #104391
  Graph graph = graph_of("s = aten::softmax.int(%x, 1, None)\nreturn s");
  EXPECT_EQ(replace_pattern(graph, graph_of("s = aten::softmax.int(%x, 1)\nreturn s"),
                            graph_of("s = aten::log_softmax.int(%x, 1)\nreturn s"))
                .applied,
            1u);
}

TEST(Limits, SpellingsOfOneOperatorAreOneOperator) {  // #108163
  Graph graph = graph_of(R"(
    a = operator.add(%x, %y)
    b = torch.add(%a, %y)
    c = call_method[target=add](%b, %y)
    d = aten::add.Tensor(%c, %y)
    e = torch.add(%d, other=%y)
    return e)",
                         "x y");
  const Pattern pattern(graph_of("a = aten::add.Tensor(%x, %y)\nreturn a", "x y"));
  EXPECT_EQ(find(graph, pattern).size(), 5u);
  ReplaceOptions options;
  EXPECT_EQ(replace_pattern(graph, pattern, "aten::sub.Tensor(x, y)", options).applied, 5u);
  EXPECT_EQ(graph.count(Op::call_function, "aten::sub.Tensor"), 5u);
}

TEST(Limits, OperandsMayBeSwapped) {
  const Graph graph = graph_of("n = aten::neg(%y)\na = aten::add.Tensor(%x, %n)\nreturn a", "x y");
  const Graph pattern = graph_of("n = aten::neg(%y)\na = aten::add.Tensor(%n, %x)\nreturn a", "x y");
  EXPECT_EQ(find(graph, pattern).size(), 0u);
  EXPECT_EQ(find(graph, pattern, {.commutative = true}).size(), 1u);
}

TEST(Limits, ModulesAreKnownByTheirType) {  // #139163
  const Graph graph = graph_of(R"(
    a = call_module[target=lin](%x)
    b = call_module[target=layer.0](%a)
    c = call_module[target=act](%b)
    return c)");
  FindOptions options;
  options.modules.type = [](std::string_view path) {
    return std::string(path == "act" ? "torch.nn.ReLU" : "torch.nn.Linear");
  };
  EXPECT_EQ(find(graph, "call_module<Linear>(x)", options).size(), 2u);
  EXPECT_EQ(find(graph, "call_module<ReLU>(call_module<torch.nn.Linear>(x))", options).size(), 1u);
  EXPECT_EQ(find(graph, "call_module[lin]<ReLU>(x)", options).size(), 0u) << "a path of the same name is not enough";
}

// A producer that the pattern shares is not two equal producers, here too: what is computed twice is merged first.
TEST(Limits, EqualProducersAreMergedFirst) {
  Graph graph = graph_of(R"(
    n = aten::neg(%x)
    m = aten::neg(%x)
    r = aten::relu(%n)
    s = aten::sigmoid(%m)
    a = aten::add.Tensor(%r, %s)
    return a)");
  const Graph pattern =
      graph_of("n = aten::neg(%x)\nr = aten::relu(%n)\ns = aten::sigmoid(%n)\na = aten::add.Tensor(%r, %s)\nreturn a");
  EXPECT_EQ(find(graph, pattern).size(), 0u);
  EXPECT_EQ(eliminate_common_subexpressions(graph), 1u);
  EXPECT_EQ(find(graph, pattern).size(), 1u);
}

// ── What is bound, and what comes in its place ───────────────────────────────────────────────────────────────────────

TEST(Limits, OneValueMayStandForTwoNames) {
  Graph graph = graph_of("a = aten::add.Tensor(%x, %x)\nr = aten::relu(%a)\nreturn r");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", "aten::mul.Tensor(x, y)").applied, 1u);
  Graph other = graph_of("a = aten::add.Tensor(%x, %y)\nr = aten::relu(%a)\nreturn r", "x y");
  EXPECT_EQ(replace_pattern(other, "aten::relu(aten::add.Tensor(x, x))", "aten::sin(x)").applied, 0u);
}

TEST(Limits, APatternThatIsNowhere) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  EXPECT_EQ(replace_pattern(graph, "aten::sigmoid(x)", "aten::sin(x)").applied, 0u);
  // Two anchors, one of them absent: KeyError in torch.fx.
  EXPECT_EQ(replace_pattern(graph, graph_of("r = aten::relu(%x)\ns = aten::sigmoid(%x)\nreturn (r, s)"),
                            graph_of("r = aten::relu(%x)\nreturn (r, r)"))
                .applied,
            0u);
}

TEST(Limits, AnInputThatNothingUses) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  EXPECT_EQ(replace_pattern(graph, graph_of("r = aten::relu(%x)\nreturn r", "x unused"),
                            graph_of("s = aten::sin(%x)\nreturn s", "x unused"))
                .applied,
            1u);
}

TEST(Limits, AReturnedInputPassesThrough) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  const Graph pattern = graph_of("r = aten::relu(%x)\nreturn (r, %x)");
  EXPECT_EQ(replace_pattern(graph, pattern, graph_of("s = aten::sin(%x)\nreturn (s, %x)")).applied, 1u);
  EXPECT_THAT(error_of([&] { replace_pattern(graph, pattern, graph_of("s = aten::sin(%x)\nreturn (s, s)")); }),
              HasSubstr("returns its input 'x'"));
}

// What returns nothing of its own is there for what it writes.
TEST(Limits, APatternThatReturnsOnlyItsInput) {
  const Pattern pattern(graph_of("r = aten::relu_(%x)\nreturn %x"));
  const Replacement clamp(graph_of("r = aten::clamp_min_(%x, 0)\nreturn %x"));
  Graph unused = graph_of("r = aten::relu_(%x)\nn = aten::neg(%x)\nreturn n");
  EXPECT_EQ(replace_pattern(unused, pattern, clamp).applied, 1u);
  EXPECT_EQ(calls_of(unused), "r_1 = aten::clamp_min_(x, 0)\nn = aten::neg(x)\nreturn n\n");
  Graph used = graph_of("r = aten::relu_(%x)\nn = aten::neg(%r)\nreturn n");
  const std::string before = print_graph(used);
  EXPECT_EQ(replace_pattern(used, pattern, clamp).refused.size(), 1u);
  EXPECT_EQ(print_graph(used), before);
  Graph dropped = graph_of("r = aten::relu_(%x)\nn = aten::neg(%x)\nreturn n");
  EXPECT_EQ(replace_pattern(dropped, pattern, Replacement(graph_of("return %x"))).applied, 0u)
      << "the write would be gone";
  const Graph two = graph_of("r = aten::relu_(%x)\ns = aten::sin_(%r)\nreturn %x");
  Graph both = graph_of("r = aten::relu_(%x)\ns = aten::sin_(%r)\nn = aten::neg(%x)\nreturn n");
  EXPECT_EQ(replace_pattern(both, two, clamp).applied, 1u);
  EXPECT_EQ(calls_of(both), "r_1 = aten::clamp_min_(x, 0)\nn = aten::neg(x)\nreturn n\n");
}

TEST(Limits, AValueReturnedTwice) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  const Graph pattern = graph_of("r = aten::relu(%x)\nreturn (r, r)");
  EXPECT_EQ(replace_pattern(graph, pattern, graph_of("s = aten::sin(%x)\nreturn (s, s)")).applied, 1u);
  EXPECT_THAT(error_of([&] {
                replace_pattern(graph, pattern, graph_of("s = aten::sin(%x)\nt = aten::neg(%x)\nreturn (s, t)"));
              }),
              HasSubstr("one value as results 0 and 1"));
}

TEST(Limits, ResultsAreCountedBeforeAnythingIsDone) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  const std::string before = print_graph(graph);
  EXPECT_EQ(error_of([&] { replace_pattern(graph, "aten::relu(x)", graph_of("s = aten::sin(%x)\nreturn (s, s)")); }),
            "the pattern returns 1 values, the replacement 2");
  // No name is not the name of what the pattern does not name.
  for (const char* const unbound : {"q", "", "relu"}) {
    Graph replacement;
    replacement.output(replacement.call_function("aten::sin", {replacement.create_node(Op::placeholder, unbound)}));
    EXPECT_EQ(error_of([&] { replace_pattern(graph, "aten::relu(x)", replacement); }),
              "the replacement takes '" + std::string(unbound) + "', which the pattern does not bind; it binds x");
  }
  EXPECT_THAT(error_of([&] { replace_pattern(graph, graph_of("return %x"), "x"); }),
              HasSubstr("everything would match"));
  EXPECT_EQ(print_graph(graph), before);
}

TEST(Limits, ACapturedInnerValueStays) {
  // y is bound to the relu that the pattern matches too; the replacement takes it, so it stays.
  Graph graph = graph_of("r = aten::relu(%x)\na = aten::add.Tensor(%r, %r)\nreturn a");
  EXPECT_EQ(replace_pattern(graph, "aten::add.Tensor(aten::relu(x), y)", "aten::mul.Tensor(x, y)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "r = aten::relu(x)\nmul = aten::mul.Tensor(x, r)\nreturn mul\n");
}

TEST(Limits, ACapturedResultIsRefused) {
  Graph graph = graph_of("r = aten::relu(%x)\na = aten::add.Tensor(%x, %r)\nreturn (r, a)");
  const RewriteReport report =
      replace_pattern(graph, graph_of("r = aten::relu(%x)\na = aten::add.Tensor(%z, %y)\nreturn (r, a)", "x y z"),
                      graph_of("r = aten::relu(%x)\na = aten::sub.Tensor(%z, %y)\nreturn (r, a)", "x y z"));
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.refused[0].node, "r");
  EXPECT_EQ(report.refused[0].reason, "the replacement would take it and replace it at once");
}

TEST(Limits, DeepGraphsAreNoProblem) {
  Graph graph = testing::chain(100000);
  const RewriteReport report =
      replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", "aten::clamp_min(aten::sub.Tensor(x, y), 0)");
  EXPECT_EQ(report.applied, 100000u);
  EXPECT_EQ(graph.count(Op::call_function, "aten::clamp_min"), 100000u);
  graph.lint();
}

TEST(Limits, MatchesBackToBackThroughAList) {  // #159613
  Graph graph = graph_of(R"(
    n = aten::neg(%x)
    c = aten::cat([%n, %x])
    m = aten::neg(%c)
    d = aten::cat([%m, %n])
    return d)");
  EXPECT_EQ(replace_pattern(graph, "aten::neg(x)", "aten::sin(x)").applied, 2u);
  EXPECT_EQ(
      calls_of(graph),
      "sin = aten::sin(x)\nc = aten::cat([sin, x])\nsin_1 = aten::sin(c)\nd = aten::cat([sin_1, sin])\nreturn d\n");
  EXPECT_EQ(replace_pattern(graph, "(aten::cat(l) | aten::sin(l))", "aten::stack(l)").applied, 4u);
  graph.lint();
  EXPECT_THAT(calls_of(graph), HasSubstr("stack_1 = aten::stack([stack, x])"));
}

TEST(Limits, AChainOfTrivialReplacementsIsLinear) {
  Graph graph;
  Node* at = &graph.placeholder("x");
  for (int i = 0; i < 200000; ++i) at = &graph.call_function("aten::clone", {at});
  graph.output(graph.call_function("aten::relu", {at}));
  EXPECT_EQ(replace_pattern(graph, "aten::clone(x)", "x").applied, 200000u);
  EXPECT_EQ(graph.size(), 3u);
}

// Whether anyone else could see a write is asked of so many views of the storage; beyond that it is taken to be so.
TEST(Limits, ManyViewsOfWhatIsWritten) {
  for (const auto& [views, applied] : {std::pair(1, 1u), {20, 1u}, {250, 1u}, {270, 0u}, {3000, 0u}}) {
    Graph graph;
    Node* at = &graph.call_function("aten::neg", {graph.placeholder("x")});
    for (int i = 0; i < views; ++i) at = &graph.call_function("aten::alias", {at});
    Node& last = graph.call_function("aten::view", {at, Argument::list({-1})});
    graph.call_function("aten::zero_", {last});
    graph.output(graph.call_function("aten::neg", {last}));
    EXPECT_EQ(replace_pattern(graph, "aten::view(v, s)", "aten::clone(v)").applied, applied) << views;
  }
}

TEST(Limits, AReportShowsFiveRefusals) {
  RewriteReport report;
  const auto text = [&] { return (std::ostringstream() << report).str(); };
  for (int i = 0; i < 5; ++i) report.refused.push_back({"rule", "n", "why"});
  EXPECT_EQ(text(), "applied 0; refused 5 (n: why; n: why; n: why; n: why; n: why)");
  report.refused.push_back({"rule", "n", "why"});
  EXPECT_EQ(text(), "applied 0; refused 6 (n: why; n: why; n: why; n: why; n: why; …)");
}

TEST(Limits, AReplacementThatDeclinesIsCounted) {
  Graph graph = graph_of("a = aten::relu(%x)\nb = aten::relu(%a)\nreturn b");
  const RuleSet rules = {{.name = "no", .pattern = "aten::relu(v)", .replacement = [](const Match&, Rewriter&) {
                            return std::vector<Argument>();
                          }}};
  const RewriteReport report = rewrite_once(graph, rules);
  EXPECT_EQ(report.rules[0].filtered, 2u);
  EXPECT_EQ(report.applied, 0u);
}

TEST(Limits, AMatchThatLostAPartSaysWhich) {
  Graph graph = graph_of("a = aten::relu(%x)\nb = aten::relu(%a)\nc = aten::relu(%b)\nreturn c");
  ReplaceOptions options;
  options.find.overlap = Overlap::all;
  const RewriteReport report = replace_pattern(graph, "aten::relu(aten::relu(v))", "aten::relu(v)", options);
  EXPECT_EQ(report.applied, 1u);
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.refused[0].reason, "an earlier rewrite replaced b, a part of it");
}

}  // namespace fx::limits_test
