// replace_pattern: torch.fx's own cases (test_subgraph_rewriter.py), as graphs.
#include "rewriter/replace_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "rewriter/provenance.h"
#include "tests/support/scalar_interpreter.h"
#include "tests/support/short_graph.h"
#include "text/parse.h"
#include "text/print.h"

namespace fx {
namespace {

using testing::calls_of;
using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::HasSubstr;
using testing::run_scalars;

std::string report_of(const RewriteReport& report) {
  std::ostringstream out;
  out << report;
  return out.str();
}

TEST(ReplacePattern, PreservesLogicWhenReplacedByItself) {
  Graph graph = graph_of("n = aten::neg(%x)\nr = aten::relu(%n)\na = aten::add.Tensor(%r, %x)\nreturn a");
  const auto before = run_scalars(graph);
  const Graph same = graph_of("n = aten::neg(%x)\nr = aten::relu(%n)\nreturn r");
  EXPECT_EQ(replace_pattern(graph, same, same).applied, 1u);
  EXPECT_EQ(run_scalars(graph), before);
  graph.lint();
}

TEST(ReplacePattern, OneOperator) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(x)", "aten::sigmoid(x)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "sigmoid = aten::sigmoid(x)\nreturn sigmoid\n");
}

TEST(ReplacePattern, TrivialReplacementsAreFollowed) {
  Graph graph =
      graph_of("n = aten::neg(%x)\nm = aten::neg(%n)\no = aten::neg(%m)\na = aten::add.Tensor(%o, %o)\nreturn a");
  std::vector<ReplacedPattern> replaced = replace_pattern_with_filters(graph, "aten::neg(x)", "x", {});
  ASSERT_EQ(replaced.size(), 3u);
  for (const ReplacedPattern& one : replaced) EXPECT_TRUE(one.replacements.empty());
  EXPECT_EQ(calls_of(graph), "a = aten::add.Tensor(x, x)\nreturn a\n");
  graph.lint();
}

TEST(ReplacePattern, SeveralOperatorsOneMatch) {
  Graph graph = graph_of("a = aten::add.Tensor(%x, %y)\nr = aten::relu(%a)\ns = aten::sigmoid(%r)\nreturn s", "x y");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", "aten::clamp_min(aten::sub.Tensor(x, y), 0)")
                .applied,
            1u);
  EXPECT_EQ(
      calls_of(graph),
      "sub = aten::sub.Tensor(x, y)\nclamp_min = aten::clamp_min(sub, 0)\ns = aten::sigmoid(clamp_min)\nreturn s\n");
}

TEST(ReplacePattern, TwoDisjointMatches) {
  Graph graph = graph_of(
      "a = aten::add.Tensor(%x, %x)\nr = aten::relu(%a)\nb = aten::add.Tensor(%r, %x)\nq = aten::relu(%b)\nreturn q");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", "aten::mul.Tensor(x, y)").applied, 2u);
  EXPECT_EQ(calls_of(graph), "mul = aten::mul.Tensor(x, x)\nmul_1 = aten::mul.Tensor(mul, x)\nreturn mul_1\n");
}

TEST(ReplacePattern, ArgumentOrderIsKept) {
  Graph graph = graph_of("m = aten::matmul(%x, %w)\nreturn m", "x w");
  EXPECT_EQ(replace_pattern(graph, graph_of("m = aten::matmul(%a, %b)\nreturn m", "a b"),
                            graph_of("s = aten::sub.Tensor(%a, %b)\nreturn s", "a b"))
                .applied,
            1u);
  EXPECT_EQ(calls_of(graph), "s = aten::sub.Tensor(x, w)\nreturn s\n");
}

TEST(ReplacePattern, OnlyTheMatchedBranchChanges) {
  Graph graph = graph_of("n = aten::neg(%x)\nr = aten::relu(%n)\ns = aten::sigmoid(%x)\nreturn (r, s)");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(aten::neg(x))", "aten::sin(x)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "sin = aten::sin(x)\ns = aten::sigmoid(x)\nreturn (sin, s)\n");
}

TEST(ReplacePattern, TheWholeGraphCanBeTheMatch) {
  const Graph pattern = graph_of("n = aten::neg(%x)\na = aten::add.Tensor(%n, %x)\nreturn a");
  Graph graph = pattern.clone();
  EXPECT_EQ(replace_pattern(graph, pattern, graph_of("s = aten::sin(%x)\nreturn s")).applied, 1u);
  EXPECT_EQ(calls_of(graph), "s = aten::sin(x)\nreturn s\n");
}

TEST(ReplacePattern, ResultsMayHaveOtherUsers) {
  Graph graph = graph_of("r = aten::relu(%x)\na = aten::neg(%r)\nb = aten::sin(%r)\nreturn (a, b, r)");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(x)", "aten::sigmoid(x)").applied, 1u);
  EXPECT_EQ(calls_of(graph),
            "sigmoid = aten::sigmoid(x)\na = aten::neg(sigmoid)\nb = aten::sin(sigmoid)\nreturn (a, b, sigmoid)\n");
}

TEST(ReplacePattern, InnerValuesMayNot) {
  Graph graph = graph_of("m = aten::matmul(%x, %x)\nr = aten::relu(%m)\na = aten::add.Tensor(%r, %m)\nreturn a");
  const std::string before = print_graph(graph);
  const RewriteReport report = replace_pattern(graph, "aten::relu(aten::matmul(x, w))", "aten::mul.Tensor(x, w)");
  EXPECT_EQ(report_of(report), "applied 0; refused 1 (m: its value is also used by a)");
  EXPECT_EQ(report.rules[0].matched, 1u);
  EXPECT_EQ(report.rules[0].refused, 1u);
  EXPECT_EQ(print_graph(graph), before);
}

TEST(ReplacePattern, AWildcardIsAnyValueWithAnyNumberOfInputs) {
  Graph graph = graph_of("c = aten::cat([%x, %y, %x], 1)\nr = aten::relu(%c)\nreturn r", "x y");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(a)", "aten::sin(a)").applied, 1u);
  EXPECT_THAT(calls_of(graph), HasSubstr("sin = aten::sin(c)"));
}

TEST(ReplacePattern, OverlapsAreResolvedInOrder) {
  Graph graph = graph_of("a = aten::neg(%x)\nb = aten::neg(%a)\nc = aten::neg(%b)\nreturn c");
  EXPECT_EQ(replace_pattern(graph, "aten::neg(aten::neg(x))", "aten::sin(x)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "sin = aten::sin(x)\nc = aten::neg(sin)\nreturn c\n");
}

TEST(ReplacePattern, TwoResults) {
  Graph graph = graph_of("n = aten::neg(%x)\ns = aten::sin(%x)\na = aten::add.Tensor(%n, %s)\nreturn a");
  EXPECT_EQ(replace_pattern(graph, graph_of("n = aten::neg(%x)\ns = aten::sin(%x)\nreturn (n, s)"),
                            graph_of("r = aten::relu(%x)\nq = aten::sigmoid(%r)\nreturn (q, r)"))
                .applied,
            1u);
  EXPECT_EQ(calls_of(graph), "r = aten::relu(x)\nq = aten::sigmoid(r)\na = aten::add.Tensor(q, r)\nreturn a\n");
}

TEST(ReplacePattern, AnInnerValueReturnedToo) {
  Graph graph = graph_of("n = aten::neg(%x)\nr = aten::relu(%n)\na = aten::add.Tensor(%n, %r)\nreturn a");
  EXPECT_EQ(replace_pattern(graph, graph_of("n = aten::neg(%x)\nr = aten::relu(%n)\nreturn (r, n)"),
                            graph_of("s = aten::sin(%x)\nreturn (s, s)"))
                .applied,
            1u);
  EXPECT_EQ(calls_of(graph), "s = aten::sin(x)\na = aten::add.Tensor(s, s)\nreturn a\n");
}

TEST(ReplacePattern, UnusedResultsStayWhereTheyWere) {
  // The dead call is replaced in its place: before the write that follows it.
  Graph graph = graph_of("r = aten::relu(%x)\nz = aten::zero_(%x)\ns = aten::sin(%x)\nreturn s");
  const auto before = run_scalars(graph, {2});
  EXPECT_EQ(replace_pattern(graph, "aten::relu(x)", "aten::sigmoid(x)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "sigmoid = aten::sigmoid(x)\nz = aten::zero_(x)\ns = aten::sin(x)\nreturn s\n");
  EXPECT_EQ(run_scalars(graph, {2}), before);
}

TEST(ReplacePattern, Methods) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(graph.call_method("relu", {x}));
  EXPECT_EQ(replace_pattern(graph, "call_method[relu](x)", "call_method[clamp](x, 0)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "clamp = clamp(x, 0)\nreturn clamp\n");
}

TEST(ReplacePattern, KeywordPositionalAndDefaultAreOneCall) {
  for (const char* args : {"(%x, %y), kwargs = {}", "(%x,), kwargs = {other: %y}", "(%x, %y), kwargs = {alpha: 1}",
                           "(), kwargs = {other: %y, self: %x}"}) {
    Graph graph =
        parse_graph(std::string("graph():\n    %x : = placeholder[target=x]\n    %y : = placeholder[target=y]\n"
                                "    %a : = call_function[target=torch.ops.aten.add.Tensor](args = ") +
                    args + ")\n    return a\n");
    EXPECT_EQ(replace_pattern(graph, "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, y)").applied, 1u) << args;
    EXPECT_EQ(calls_of(graph), "sub = aten::sub.Tensor(x, y)\nreturn sub\n");
  }
  Graph scaled = parse_graph(
      "graph():\n    %x : = placeholder[target=x]\n    %a : = call_function[target=torch.ops.aten.add.Tensor](args = "
      "(%x, %x), kwargs = {alpha: 2})\n    return a\n");
  EXPECT_EQ(replace_pattern(scaled, "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, y)").applied, 0u);
}

TEST(ReplacePattern, AFailureAtOneAnchorDoesNotSpoilTheNext) {
  Graph graph = graph_of(
      "a = aten::add.Tensor(%x, 1)\nr = aten::relu(%a)\nb = aten::add.Tensor(%x, %r)\nq = aten::relu(%b)\nreturn q");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y: node))", "aten::mul.Tensor(x, y)").applied, 1u);
  EXPECT_EQ(calls_of(graph),
            "a = aten::add.Tensor(x, 1)\nr = aten::relu(a)\nmul = aten::mul.Tensor(x, r)\nreturn mul\n");
}

TEST(ReplacePattern, FiltersSeeAllMatchesFirst) {
  Graph graph = graph_of("a = aten::add.Tensor(%x, %y)\nb = aten::add.Tensor(%a, 2)\nreturn b", "x y");
  std::size_t asked = 0;
  RewriteReport report;
  const auto replaced = replace_pattern_with_filters(
      graph, "aten::add.Tensor(x, y)", "aten::mul.Tensor(x, y)",
      {[&](const Match& match) { return ++asked, match.argument("y").is_node(); }}, {}, &report);
  EXPECT_EQ(asked, 2u);
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_EQ(report.rules[0].filtered, 1u);
  ASSERT_EQ(replaced[0].replacements.size(), 1u);
  EXPECT_EQ(replaced[0].replacements[0]->target(), "aten::mul.Tensor");
  EXPECT_EQ(replaced[0].nodes_map.size(), 2u);
  EXPECT_EQ(calls_of(graph), "mul = aten::mul.Tensor(x, y)\nb = aten::add.Tensor(mul, 2)\nreturn b\n");
}

TEST(ReplacePattern, AWildcardBindsAWholeList) {
  Graph graph = graph_of("c = aten::cat([%x, %y])\ns = aten::sum.dim_IntList(%c, [0, 1])\nreturn s", "x y");
  EXPECT_EQ(replace_pattern(graph, graph_of("c = aten::cat(%l)\ns = aten::sum.dim_IntList(%c, %d)\nreturn s", "l d"),
                            graph_of("c = aten::cat(%l, 1)\ns = aten::mean.dim(%c, %d)\nreturn s", "l d"))
                .applied,
            1u);
  EXPECT_EQ(calls_of(graph), "c_1 = aten::cat([x, y], 1)\ns_1 = aten::mean.dim(c_1, [0, 1])\nreturn s_1\n");
}

TEST(ReplacePattern, ListsInsideAMatchFollowEarlierReplacements) {
  // torch.fx leaves an erased node inside the list (#159613).
  Graph graph =
      graph_of("n = aten::neg(%x)\nc = aten::cat([%n, %x])\nm = aten::neg(%c)\nd = aten::cat([%m, %n])\nreturn d");
  EXPECT_EQ(replace_pattern(graph, Pattern({match::op("aten::neg", match::any("x"))}), "aten::sin(x)").applied, 2u);
  EXPECT_EQ(
      calls_of(graph),
      "sin = aten::sin(x)\nc = aten::cat([sin, x])\nsin_1 = aten::sin(c)\nd = aten::cat([sin_1, sin])\nreturn d\n");
  EXPECT_EQ(replace_pattern(graph, "(aten::cat(l) | aten::sin(l))", "aten::stack(l)").applied, 4u);
  graph.lint();
  EXPECT_THAT(calls_of(graph), HasSubstr("stack_1 = aten::stack([stack, x])"));
}

TEST(ReplacePattern, AttributesMatchByKind) {
  Graph graph = graph_of("w = get_attr[target=layer.weight]()\nl = aten::linear(%x, %w)\nreturn l");
  EXPECT_EQ(replace_pattern(graph, graph_of("p = get_attr[target=other]()\nl = aten::linear(%x, %p)\nreturn l"),
                            graph_of("q = get_attr[target=fused]()\nl = aten::matmul(%x, %q)\nreturn l"))
                .applied,
            1u);
  EXPECT_EQ(calls_of(graph), "q = fused()\nl_1 = aten::matmul(x, q)\nreturn l_1\n");
}

TEST(ReplacePattern, NewNodesAreListedInOrder) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  const auto replaced = replace_pattern_with_filters(graph, "aten::relu(x)", "aten::neg(aten::sin(aten::neg(x)))", {});
  ASSERT_EQ(replaced.size(), 1u);
  std::vector<std::string> names;
  for (const Node* node : replaced[0].replacements) names.push_back(node->name());
  EXPECT_THAT(names, ElementsAre("neg", "sin", "neg_1"));
}

TEST(ReplacePattern, AFunctionBuildsTheReplacement) {
  Graph graph = graph_of("a = aten::add.Tensor(%x, 3)\nb = aten::add.Tensor(%a, -1)\nreturn b");
  const auto build = [](const Match& match, Rewriter& rewriter) -> std::vector<Argument> {
    if (match.literal("c") < 0) return {};
    return {rewriter.call_function("aten::mul.Scalar", {match["x"], match.literal("c") * 2})};
  };
  const RewriteReport report = replace_pattern(graph, "aten::add.Tensor(x, c: literal)", build);
  EXPECT_EQ(report.applied, 1u);
  EXPECT_EQ(report.rules[0].filtered, 1u);
  EXPECT_EQ(calls_of(graph), "mul = aten::mul.Scalar(x, 6.0)\nb = aten::add.Tensor(mul, -1)\nreturn b\n");
}

TEST(ReplacePattern, LiteralsAreCapturedAndUsed) {
  Graph graph = graph_of("d = aten::div.Tensor(%x, 4.0)\nreturn d");
  const auto reciprocal = [](const Match& m, Rewriter& r) {
    return Argument(r.call_function("aten::mul.Tensor", {m["x"], 1 / m.literal("c")}));
  };
  EXPECT_EQ(replace_pattern(graph, "aten::div.Tensor(x, c: float)", reciprocal).applied, 1u);
  EXPECT_EQ(calls_of(graph), "mul = aten::mul.Tensor(x, 0.25)\nreturn mul\n");
  EXPECT_EQ(replace_pattern(graph, "aten::mul.Tensor(x, c: float)", "aten::clamp(x, c, max=c)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "clamp = aten::clamp(x, 0.25, max=0.25)\nreturn clamp\n");
}

TEST(ReplacePattern, AResultMayBecomeALiteral) {
  Graph graph = graph_of("r = aten::relu(%x)\na = aten::add.Tensor(%x, %r)\nreturn a");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(x)", "0").applied, 1u);
  EXPECT_EQ(calls_of(graph), "a = aten::add.Tensor(x, 0)\nreturn a\n");
}

TEST(ReplacePattern, NewNodesKnowWhereTheyComeFrom) {
  Graph graph = graph_of("a = aten::add.Tensor(%x, %x)\nr = aten::relu(%a)\nreturn r");
  graph.find("r")->meta().set(meta_key::kType, std::string("torch.Tensor"));
  graph.find("r")->meta().set(meta_key::kModuleStack, std::string("layer1"));
  replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", "aten::neg(aten::sub.Tensor(x, y))", {.name = "demo"});
  const Meta* last = graph.find("neg")->find_meta();
  ASSERT_TRUE(last);
  EXPECT_EQ(provenance_of(*graph.find("neg")), "demo: a, r");
  EXPECT_EQ(*last->get<std::string>(meta_key::kType), "torch.Tensor");
  EXPECT_EQ(*last->get<std::string>(meta_key::kModuleStack), "layer1");
  const Meta* inner = graph.find("sub")->find_meta();
  EXPECT_EQ(provenance_of(*graph.find("sub")), "demo: a, r");
  EXPECT_EQ(inner->get<Provenance>(meta_key::kProvenance)->sources().size(), 2u);
  EXPECT_EQ(inner->get<std::string>(meta_key::kType), nullptr);
}

}  // namespace
}  // namespace fx
