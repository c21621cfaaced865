// Graphs on which a rewrite or an analysis once was wrong, each the smallest of its kind. Programs with weights have
// theirs in tests/rules/never_wrong_test.cc.
#include <gtest/gtest.h>

#include <fxgraph/analysis/dead_code.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::hostile_graphs_test {

Graph graph_of(const std::string& body) { return parse_graph("graph():\n" + body, "test"); }

constexpr const char* kTwo = "%x = placeholder[target=x]\n%y = placeholder[target=y]\n";

TEST(HostileGraphs, CommonSubexpressionsCommuteWithDefaultsOnly) {
  const std::string text = std::string(kTwo) +
                           "%a = call_function[target=aten::add.Tensor](args = (%x, %y), kwargs = {alpha: 2})\n"
                           "%b = call_function[target=aten::add.Tensor](args = (%y, %x), kwargs = {alpha: ALPHA})\n"
                           "%c = call_function[target=aten::sub.Tensor](args = (%a, %b))\nreturn c";
  std::string other = text;
  other.replace(other.find("ALPHA"), 5, "2");
  Graph graph = graph_of(other);
  EXPECT_EQ(eliminate_common_subexpressions(graph), 0u);
  Graph plain = graph_of(std::string(kTwo) +
                         "%a = call_function[target=aten::add.Tensor](args = (%x, %y), kwargs = {alpha: 1})\n"
                         "%b = call_function[target=aten::add.Tensor](args = (%y, %x))\n"
                         "%c = call_function[target=aten::sub.Tensor](args = (%a, %b))\nreturn c");
  EXPECT_EQ(eliminate_common_subexpressions(plain), 1u);
}

TEST(HostileGraphs, PatternsCommuteWithDefaultsOnly) {
  Graph graph = graph_of(std::string(kTwo) +
                         "%z = call_function[target=aten::neg](args = (%y,))\n"
                         "%a = call_function[target=aten::add.Tensor](args = (%x, %z), kwargs = {alpha: 2})\nreturn a");
  EXPECT_TRUE(find(graph, "commutative(aten::add.Tensor(aten::neg(a), b, alpha=c: int))").empty());
  EXPECT_EQ(find(graph, "commutative(aten::add.Tensor(b, aten::neg(a), alpha=c: int))").size(), 1u);
}

TEST(HostileGraphs, EqualCopiesStayTwoResults) {
  Graph views = graph_of(
      "%x = placeholder[target=x]\n%a = call_function[target=aten::reshape](args = (%x, [-1]))\n"
      "%b = call_function[target=aten::reshape](args = (%x, [-1]))\nreturn (a, b)");
  EXPECT_EQ(eliminate_common_subexpressions(views), 0u) << "each may be a copy";
  Graph chain = graph_of(
      "%x = placeholder[target=x]\n%a = call_function[target=aten::exp](args = (%x,))\n"
      "%b = call_function[target=aten::exp](args = (%x,))\n%c = call_function[target=aten::exp](args = (%x,))\n"
      "%d = call_function[target=aten::neg](args = (%a,))\nreturn (b, c, d)");
  EXPECT_EQ(eliminate_common_subexpressions(chain), 1u) << "b may stand for a, c may not stand for b";
}

TEST(HostileGraphs, AnAlphaOfZeroIsNoIdentity) {
  const Graph graph = graph_of(std::string(kTwo) +
                               "%a = call_function[target=aten::add.Tensor](args = (%x, %y), kwargs = {alpha: 0})\n"
                               "return a");
  Shapes shapes(graph);
  for (const Node& node : graph.nodes()) shapes[node] = TensorInfo{.sizes = {2}};
  EXPECT_TRUE(find_no_ops(graph, &shapes).empty());
}

TEST(HostileGraphs, WhatWasRectifiedMayBeNegativeAgain) {
  const Graph graph = graph_of(
      "%x = placeholder[target=x]\n%r = call_function[target=aten::relu](args = (%x,))\n"
      "%w = call_function[target=aten::mul_.Scalar](args = (%r, -1.5))\n"
      "%s = call_function[target=aten::relu](args = (%r,))\nreturn s");
  EXPECT_TRUE(find_no_ops(graph).empty());
  EXPECT_EQ(DeadCode(graph).count(DeadFinding::Kind::no_op), 0u);
}

TEST(HostileGraphs, AConditionIsAskedAgainWhereAnEarlierRewriteChangedTheInput) {
  const std::string text =
      "%x = placeholder[target=x]\n%a = call_function[target=aten::relu](args = (%x,))\n"
      "%b = call_function[target=aten::neg](args = (%a,))\nreturn b";
  const Rule first{.name = "first", .pattern = "aten::relu(x)", .replacement = "aten::sigmoid(x)"};
  const Rule second{.name = "second",
                    .pattern = "aten::neg(v: node)",
                    .when = [](const Match& m) -> Decision { return m.called("v") == "aten::relu"; },
                    .replacement = "aten::abs(v)"};
  Graph graph = graph_of(text);
  rewrite_once(graph, RuleSet{first, second});
  EXPECT_EQ(graph.count(Op::call_function, "aten::abs"), 0u) << print_graph(graph);
  Graph filtered = graph_of(
      "%x = placeholder[target=x]\n%a = call_function[target=aten::neg](args = (%x,))\n"
      "%b = call_function[target=aten::neg](args = (%a,))\nreturn b");
  ReplaceOptions options;
  options.filters = {[](const Match& m) { return !m["v"].is_call("aten::abs"); }};
  replace_pattern(filtered, "aten::neg(v: node)", "aten::abs(v)", options);
  EXPECT_EQ(filtered.count(Op::call_function, "aten::abs"), 1u) << print_graph(filtered);
}

TEST(HostileGraphs, AConstantIsNotWrittenThroughAView) {
  for (const char* between : {"",
                              "%t = call_function[target=aten::t](args = (%w,))\n"
                              "%k = call_function[target=aten::mul_.Scalar](args = (%t, 2))\n"}) {
    const Graph graph = graph_of(std::string("%x = placeholder[target=x]\n%w = get_attr[target=w]\n") + between +
                                 "%v = get_attr[target=w]\n"
                                 "%o = call_function[target=aten::mm](args = (%x, %v))\nreturn o");
    EXPECT_EQ(find(graph, "aten::mm(x, k: constant)").size(), *between ? 0u : 1u);
  }
  const Graph returned = graph_of(
      "%x = placeholder[target=x]\n%w = get_attr[target=w]\n%o = call_function[target=aten::mm](args = (%x, %w))\n"
      "%t = call_function[target=aten::t](args = (%w,))\nreturn (o, t)");
  EXPECT_TRUE(find(returned, "aten::mm(x, k: constant)").empty()) << "the caller may write to it";
}

TEST(HostileGraphs, GraphsThatAreCalledMayDrawBetweenDraws) {
  for (const char* between : {"aten::neg](args = (%y,))", "higher_order::cond](args = (True, %t, %e, (%y,)))",
                              "higher_order::wrap_with_set_grad_enabled](args = (False, %t, %y))"}) {
    Graph graph =
        graph_of(std::string("%x = placeholder[target=x]\n%y = placeholder[target=y]\n%t = get_attr[target=t]\n"
                             "%e = get_attr[target=e]\n%n = call_function[target=aten::normal_](args = (%x, 0.0))\n"
                             "%c = call_function[target=") +
                 between + "\n%s = call_function[target=aten::sum](args = (%n,))\nreturn (c, s)");
    const bool calls_graph = std::string_view(between).starts_with("higher_order");
    EXPECT_EQ(replace_pattern(graph, "aten::sum(aten::normal_(x, m))", "aten::sum(aten::normal_(x, m))").applied,
              calls_graph ? 0u : 1u)
        << between;
  }
}

TEST(HostileGraphs, GraphsThatAreCalledMayWriteWhatIsReadInBetween) {
  const auto rewritten = [](const char* between) {
    Graph graph = graph_of(
        std::string("%x = placeholder[target=x]\n%y = placeholder[target=y]\n%t = get_attr[target=t]\n"
                    "%e = get_attr[target=e]\n%a = call_function[target=aten::exp](args = (%x,))\n"
                    "%r = call_function[target=aten::relu](args = (") +
        between + ",))\n%c = call_function[target=higher_order::cond](args = (True, %t, %e, [%a]))\nreturn (c, r)");
    const char* part = "a = aten::exp(x)\nc = higher_order::cond(True, t, e, [a])\nreturn a, c";
    return replace_pattern(graph, part, part, {.allow_output_aliases = true}).applied;
  };
  EXPECT_EQ(rewritten("%y"), 1u);
  EXPECT_EQ(rewritten("%a"), 0u) << "the graph that is chosen may write to it";
}

TEST(HostileGraphs, ACopyOfOverlappingElementsIsNeededWhereSomebodyWrites) {
  for (const char* view : {"aten::expand](args = (%a, [2, 3]))", "aten::as_strided](args = (%a, [2, 2], [1, 1]))",
                           "aten::unfold](args = (%a, 0, 2, 1))", "aten::view](args = (%a, [3, 1]))"}) {
    for (const char* then : {"%w = call_function[target=aten::add_.Scalar](args = (%c, 1))\nreturn w", "return c",
                             "%t = call_function[target=aten::t](args = (%c,))\nreturn t",
                             "%s = call_function[target=aten::sum](args = (%c,))\nreturn s"}) {
      Graph graph =
          graph_of(std::string("%x = placeholder[target=x]\n%a = call_function[target=aten::neg](args = (%x,))\n"
                               "%v = call_function[target=") +
                   view + "\n%c = call_function[target=aten::clone](args = (%v,))\n" + then);
      const bool needed =
          !std::string_view(view).starts_with("aten::view") && !std::string_view(then).starts_with("%s");
      EXPECT_EQ(replace_pattern(graph, "aten::clone(x: node)", "x").applied, needed ? 0u : 1u) << view << " " << then;
    }
  }
}

TEST(HostileGraphs, DTypesBeyondTheMaskFitNoTest) {
  const Graph graph =
      graph_of("%x = placeholder[target=x]\n%a = call_function[target=aten::neg](args = (%x,))\nreturn a");
  for (const int code : {32, 38, 63, 200}) {
    Shapes shapes(graph);
    shapes[*graph.find("x")] = TensorInfo{.dtype = static_cast<DType>(code), .sizes = {2}};
    EXPECT_TRUE(find(graph, "aten::neg(x: f32[2])", {.shapes = &shapes}).empty()) << code;
  }
}

TEST(HostileGraphs, SharedListsCostWhatTheyHold) {
  Argument shared = Argument::list({Argument(1)});
  EXPECT_THROW(
      {
        for (int i = 0; i < 62; ++i) shared = Argument::list({shared, shared});
      },
      Error);
  Argument deep = Argument::list({Argument(1)});
  for (int i = 0; i < 62; ++i) deep = Argument::list({deep});
  EXPECT_EQ(deep, deep);
}

TEST(HostileGraphs, ErasedNodesTakeNothing) {
  Graph graph = graph_of("%x = placeholder[target=x]\n%a = call_function[target=aten::neg](args = (%x,))\nreturn x");
  Node& a = *graph.find("a");
  Node& x = *graph.find("x");
  graph.erase_node(a);
  EXPECT_THROW(a.set_target("aten::relu"), Error);
  EXPECT_THROW(a.set_target(Op::call_method, "relu"), Error);
  EXPECT_THROW(a.rename("b"), Error);
  EXPECT_THROW(a.set_args({x}), Error);
  EXPECT_THROW(a.replace_input_with(x, x), Error);
  EXPECT_THROW(a.prepend(x), Error);
  EXPECT_THROW(x.append(a), Error);
  EXPECT_EQ(graph.count(Op::call_function, "aten::relu"), 0u);
  EXPECT_EQ(graph.count(Op::call_function, "aten::neg"), 0u);
}

TEST(HostileGraphs, AUseBeforeItsDefinitionIsNotCopied) {
  Graph graph = graph_of(
      "%x = placeholder[target=x]\n%a = call_function[target=aten::neg](args = (%x,))\n"
      "%b = call_function[target=aten::relu](args = (%a,))\nreturn b");
  graph.find("b")->append(*graph.find("a"));
  Graph copy;
  Graph::ValueMap values(graph);
  EXPECT_THROW(copy.graph_copy(graph, values), Error);
}

TEST(HostileGraphs, AnOperatorWithoutOverloadPrintsAsPythonHasIt) {
  const Graph graph = graph_of(std::string(kTwo) +
                               "%a = call_function[target=aten::add](args = (%x, %y))\n"
                               "%b = call_function[target=aten::relu](args = (%a,))\nreturn b");
  const std::string text = print_graph(graph);
  EXPECT_NE(text.find("target=torch.ops.aten.add]"), std::string::npos) << text;
  EXPECT_NE(text.find("target=torch.ops.aten.relu.default]"), std::string::npos) << text;
  EXPECT_EQ(print_graph(parse_graph(text)), text);
}

TEST(HostileGraphs, AValueMadeAfterTheLastWriteWentMayBeWritten) {
  std::string body = "%x = placeholder[target=x]\n";
  std::string last = "x";
  for (int i = 0; i < 50; ++i) {
    const std::string n = std::to_string(i);
    body += "%r" + n + " = call_function[target=aten::relu](args = (%" + last + ",))\n";
    body += "%n" + n + " = call_function[target=aten::neg_](args = (%r" + n + ",))\n";
    body += "%a" + n + " = call_function[target=aten::abs](args = (%n" + n + ",))\n";
    last = "a" + n;
  }
  Graph graph = graph_of(body + "return " + last);
  const RuleSet rules = {
      {.name = "no-write", .pattern = "aten::neg_(aten::relu(x))", .replacement = "aten::neg(aten::relu(x))"},
      {.name = "write", .pattern = "aten::abs(v: aten::neg(_))", .replacement = "aten::abs_(v)"}};
  EXPECT_EQ(rewrite_to_fixed_point(graph, rules).applied, 100u);
  graph.lint();
  EXPECT_EQ(graph.count(Op::call_function, "aten::neg_"), 0u);
  EXPECT_EQ(graph.count(Op::call_function, "aten::abs_"), 50u);
}

}  // namespace fx::hostile_graphs_test
