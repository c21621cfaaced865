#include <fxgraph/matchers/matcher.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/matchers/pattern_set.h>
#include <fxgraph/text/parse.h>
#include "tests/support/match_texts.h"
#include "tests/support/random_graph.h"
#include "tests/support/short_graph.h"

namespace fx {

// What src/trace does for functions on tensors.
struct ReluOfSum {};
template <>
struct TracedFunction<ReluOfSum> {
  static Graph graph(const ReluOfSum&) {
    return testing::graph_of("a = aten::add.Tensor(%x, %y)\nr = aten::relu(%a)\nreturn r", "x y");
  }
};

namespace find_test {

using namespace match;
using ::testing::ElementsAre;
using testing::graph_of;

std::vector<std::string> found(const Graph& graph, const Pattern& pattern, const FindOptions& options = {}) {
  return testing::texts_of(fx::find(graph, pattern, options));
}

// ── Combinators ──────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Combinators, TheExampleOfTheManual) {
  const Graph graph = graph_of(
      "w = get_attr[target=conv.weight]()\nc = aten::conv2d(%x, %w)\na = aten::add.Tensor(%y, %c)\nr = "
      "aten::hardswish(%a)\n"
      "d = aten::conv2d(%x, %w)\nb = aten::add.Tensor(%d, %y)\ns = aten::clamp(%b, 0.0, 6.0)\nreturn (r, s)",
      "x y");
  auto conv = op("aten::conv2d", any("x"), parameter("w"), maybe(parameter("b"))).name("conv");
  auto act = one_of(op("aten::relu"), op(re("aten::hard(swish|sigmoid)")), op("aten::clamp", _, lit(0.0), lit(6.0)))
                 .name("act");
  const Pattern p = act(commutative("aten::add.Tensor", conv.used_once(), any("residual")));
  const std::vector<Match> matches = fx::find(graph, p);
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[0]["conv"].name(), "c");
  EXPECT_EQ(matches[0]["residual"].name(), "y");
  EXPECT_EQ(matches[0].anchor().name(), "r");
  EXPECT_EQ(matches[0].alternative("act"), 1);
  EXPECT_FALSE(matches[0].has("b"));
  EXPECT_TRUE(matches[0].argument("b").is_none());
  EXPECT_EQ(matches[1]["conv"].name(), "d");
  EXPECT_EQ(matches[1].alternative("act"), 2);
  EXPECT_EQ(matches[1].nodes().size(), 3u);
  EXPECT_EQ(p.str(),
            "conv = aten::conv2d(x, w: get_attr, maybe(b: get_attr)).used_once\n"
            "_1 = commutative(aten::add.Tensor(conv, residual))\n"
            "act = (aten::relu(_1) | /aten::hard(swish|sigmoid)/(_1) | aten::clamp(_1, 0.0, 6.0))\n"
            "return act\n");
}

TEST(Combinators, NestedCommutativeChoicesBacktrack) {
  // (x*y)+x: swapping the inner operands fits although the inner product alone had settled on the other order.
  const Pattern p = commutative("aten::add.Tensor", commutative("aten::mul.Tensor", any("x"), any("y")), any("x"));
  for (const char* body : {"m = aten::mul.Tensor(%a, %b)\ns = aten::add.Tensor(%m, %a)\nreturn s",
                           "m = aten::mul.Tensor(%b, %a)\ns = aten::add.Tensor(%m, %a)\nreturn s",
                           "m = aten::mul.Tensor(%a, %b)\ns = aten::add.Tensor(%a, %m)\nreturn s",
                           "m = aten::mul.Tensor(%b, %a)\ns = aten::add.Tensor(%a, %m)\nreturn s"}) {
    EXPECT_THAT(found(graph_of(body, "a b"), p), ElementsAre("s {x: a, y: b}")) << body;
  }
}

TEST(Combinators, RestAndDefaults) {
  const Graph graph = graph_of(
      "c = aten::conv2d(%x, %w, None, [2, 2])\nd = aten::conv2d(%x, %w, None, [1, 1])\ne = aten::conv2d(%x, "
      "%w)\nreturn (c, d, e)",
      "x w");
  EXPECT_EQ(found(graph, op("aten::conv2d", any("x"), any("w"))).size(), 2u);
  EXPECT_EQ(found(graph, op("aten::conv2d", any("x"), any("w"), rest())).size(), 3u);
  EXPECT_EQ(found(graph, op("aten::conv2d")).size(), 3u);
  EXPECT_THAT(found(graph, op("aten::conv2d", _, _, rest()).kwarg("stride", lit_any("s"))),
              ElementsAre("c {s: [2, 2]}", "d {s: [1, 1]}", "e {s: [1, 1]}"));
  EXPECT_EQ(found(graph, op("aten::conv2d", _, _).kwarg("stride", 2)).size(), 1u) << "an int stands for equal elements";
}

TEST(Combinators, NothingIsNearAnInfinity) {
  const Graph graph = graph_of(
      "a = aten::add.Tensor(%x, inf)\nb = aten::add.Tensor(%x, -inf)\nc = aten::add.Tensor(%x, nan)\nreturn (a, b, c)");
  const auto add = [](Expr second) { return op("aten::add.Tensor", any("x"), second); };
  EXPECT_TRUE(found(graph, add(near(6))).empty());
  EXPECT_THAT(found(graph, add(near(std::numeric_limits<double>::infinity()))), ElementsAre("a {x: x}"));
}

TEST(Combinators, LiteralsHaveKinds) {
  const Graph graph = graph_of(
      "a = aten::add.Tensor(%x, 1)\nb = aten::add.Tensor(%x, 1.0)\nc = aten::add.Tensor(%x, 0.70710677)\nd = "
      "aten::add.Tensor(%x, True)\nreturn (a, b, c, d)");
  const auto add = [](Expr second) { return op("aten::add.Tensor", any("x"), second); };
  EXPECT_THAT(found(graph, add(1)), ElementsAre("a {x: x}"));
  EXPECT_THAT(found(graph, add(1.0)), ElementsAre("b {x: x}"));
  EXPECT_THAT(found(graph, add(true)), ElementsAre("d {x: x}"));
  EXPECT_THAT(found(graph, add(near(0.7071067811865476))), ElementsAre("c {x: x}"));
  EXPECT_THAT(found(graph, add(near(1, 0))), ElementsAre("a {x: x}", "b {x: x}"))
      << "a tolerance looks at values, not kinds";
  EXPECT_THAT(found(graph, add(lit_int("c"))), ElementsAre("a {x: x, c: 1}"));
  EXPECT_EQ(found(graph, add(lit_float())).size(), 3u);
  EXPECT_EQ(found(graph, add(lit_any())).size(), 4u);
  EXPECT_EQ(found(graph, add(9), {.ignore_literals = true}).size(), 4u);
  EXPECT_EQ(found(graph, add(value())).size(), 0u);
  const std::vector<Match> matches = fx::find(
      graph,
      add(lit_any("c").where([](const Argument& c) { return c.is_float() && c.as_float() < 1; }, "less than one")));
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_NEAR(matches[0].literal("c"), 0.7071, 1e-3);
  EXPECT_THROW(matches[0]["c"], Error);
  EXPECT_THROW(matches[0].argument("nothing"), Error);
}

TEST(Combinators, SetsTagsAndLists) {
  const Graph graph = graph_of(
      "a = aten::relu(%x)\nb = aten::view(%a, [2])\nc = aten::sum(%b)\nd = aten::cat([%a, %b, %x], 1)\nreturn (c, d)");
  FindOptions loose{.contained = false};
  EXPECT_THAT(found(graph, op(Tag::view, any("x"), rest()), loose), ElementsAre("b {x: a}"));
  EXPECT_THAT(found(graph, op(Tag::reduction, any("x"), rest()), loose), ElementsAre("c {x: b}"));
  EXPECT_THAT(found(graph, op({"aten::sum", Tag::pointwise}, any("x"), rest()), loose),
              ElementsAre("a {x: x}", "c {x: b}"));
  EXPECT_THAT(found(graph, op("aten::cat", list({any("p"), rest()}), rest()), loose), ElementsAre("d {p: a}"));
  EXPECT_THAT(found(graph, op("aten::cat", list({_, _}), rest()), loose), ElementsAre());
  EXPECT_THAT(
      found(graph, op("aten::cat", list({_, op("aten::view", any("v"), rest()), any("x")}), lit_any("d")), loose),
      ElementsAre("d {v: a, x: x, d: 1}"));
}

TEST(Combinators, APlainNameIsAllItsOverloads) {
  const Graph graph = graph_of("a = aten::mul.Tensor(%x, %x)\nb = aten::mul.Scalar(%a, 2)\nreturn b");
  EXPECT_EQ(found(graph, op("aten::mul", any("x"), _), {.contained = false}).size(), 2u);
  EXPECT_EQ(found(graph, op("aten::relu", any("x"))).size(), 0u);
}

TEST(Combinators, MistakesAreSaid) {
  EXPECT_THROW(op("aten::add", rest(), any("x")), Error);
  EXPECT_THROW(Pattern(any("x")), Error);
  EXPECT_THROW(Pattern(maybe(op("aten::relu"))(any("x"))), Error);
  EXPECT_THROW(re("("), Error);
  EXPECT_THROW(Pattern(op("aten::add.Tensor", op("aten::relu", _).name("a"), op("aten::neg", _).name("a"))), Error);
  EXPECT_THROW(Pattern(op("aten::relu", any("a")).name("a")), Error);
  EXPECT_THROW(op("aten::relu", _)(any("x"), any("y")), Error);
}

TEST(Functions, WhatCanBeTracedIsAPattern) { EXPECT_EQ(fx::find(testing::chain(3), ReluOfSum{}).size(), 3u); }

// ── Several results ──────────────────────────────────────────────────────────────────────────────────────────────────

TEST(SeveralResults, JoinedByAnInput) {
  const Graph graph = graph_of(
      "a = aten::relu(%x)\nb = aten::sin(%y)\nc = aten::sin(%x)\nd = aten::relu(%y)\nreturn (a, b, c, d)", "x y");
  EXPECT_THAT(found(graph, Pattern{op("aten::relu", any("v")).name("r"), op("aten::sin", any("v")).name("s")}),
              ElementsAre("a {v: x, r: a, s: c}", "d {v: y, r: d, s: b}"));
}

TEST(SeveralResults, NotJoinedIsAProductThatTheBudgetEnds) {
  const Graph graph = testing::fan(400);
  FindStats stats;
  const Pattern pairs{op("aten::relu", any("a")), op("aten::relu", any("b"))};
  EXPECT_EQ(fx::find(graph, pairs, {.overlap = Overlap::all, .stats = &stats}).size(), 160000u);
  EXPECT_EQ(stats.stop, SearchStop::complete);
  EXPECT_LT(fx::find(graph, pairs, {.overlap = Overlap::all, .budget = 1000, .stats = &stats}).size(), 1000u);
  EXPECT_EQ(stats.stop, SearchStop::budget);
}

// ── Policies, cost ───────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Overlaps, Policies) {
  const Graph graph = graph_of("a = aten::relu(%x)\nb = aten::neg(%a)\nc = aten::sin(%b)\nreturn c");
  const Pattern p =
      one_of(op("aten::neg", op("aten::relu", any("x"))), op("aten::sin", op("aten::neg", op("aten::relu", any("x")))))
          .name("p");
  EXPECT_THAT(found(graph, p), ElementsAre("b {x: x, p: b}"));
  EXPECT_THAT(found(graph, p, {.overlap = Overlap::largest}), ElementsAre("c {x: x, p: c}"));
  EXPECT_EQ(found(graph, p, {.overlap = Overlap::all}).size(), 2u);
  try {
    found(graph, p, {.overlap = Overlap::error});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the matches at b and c share b"));
  }
}

TEST(Cost, AnAbsentOperatorCostsNothing) {
  const Graph graph = testing::chain(1000);
  FindStats stats;
  EXPECT_TRUE(fx::find(graph, "aten::sigmoid(aten::add.Tensor(x, y))", {.stats = &stats}).empty());
  EXPECT_EQ(stats.candidates, 0u);
  EXPECT_EQ(stats.nodes_visited, 0u);
}

TEST(Cost, TheSearchStartsAtTheRarestOperator) {
  Graph graph = testing::chain(1000);
  Node& last = graph.output_node()->arg(0).node();
  Node* rare;
  {
    const auto scope = graph.inserting_after(last);
    rare = &graph.call_function("aten::sigmoid", {last});
    Node& top = graph.call_function("aten::relu", {*rare});
    graph.output_node()->set_args({&top});
  }
  FindStats stats;
  EXPECT_EQ(fx::find(graph, "aten::relu(aten::sigmoid(aten::mul.Tensor(x, y)))", {.stats = &stats}).size(), 1u);
  EXPECT_EQ(stats.candidates, 1u);
  EXPECT_LE(stats.nodes_visited, 8u);
}

TEST(Cost, CountersArePerNodeNotPerGraph) {
  FindStats small;
  FindStats large;
  fx::find(testing::chain(100), "aten::relu(aten::add.Tensor(x, y))", {.stats = &small});
  fx::find(testing::chain(1000), "aten::relu(aten::add.Tensor(x, y))", {.stats = &large});
  EXPECT_EQ(10 * small.nodes_visited, large.nodes_visited);
  EXPECT_EQ(small.candidates, 100u);
  EXPECT_EQ(small.matches, 100u);
}

TEST(Cost, OneValueWithManyUsers) {
  Graph graph = testing::fan(100000);
  Node& x = *graph.placeholders()[0];
  {
    const auto scope = graph.inserting_after(*graph.output_node()->previous());
    Node& s = graph.call_function("aten::sigmoid", {x});
    Node& t = graph.call_function("aten::neg", {s});
    graph.output_node()->set_args({Argument(Argument::list({&t, graph.output_node()->args()[0]}))});
  }
  FindStats stats;
  EXPECT_EQ(fx::find(graph, Pattern{op("aten::neg", op("aten::sigmoid", any("x"))), op("aten::relu", any("x"))},
                     {.stats = &stats})
                .size(),
            1u);
  EXPECT_LE(stats.nodes_visited, 20u);
}

TEST(Cost, AdversarialCommutativePatternsStop) {
  // Every add commutes and nothing fits at the end.
  Graph graph;
  Node* at = &graph.placeholder("x");
  Node& y = graph.placeholder("y");
  for (int i = 0; i < 40; ++i) at = &graph.call_function("aten::add.Tensor", {at, at});
  graph.output(*at);
  Expr e = op("aten::neg", any());
  for (int i = 0; i < 40; ++i) e = commutative("aten::add.Tensor", e, any());
  FindStats stats;
  EXPECT_TRUE(fx::find(graph, e, {.budget = 100000, .stats = &stats}).empty());
  (void)y;
  Expr deep = commutative("aten::add.Tensor", any("p"), any("q"));
  for (int i = 0; i < 30; ++i)
    deep = commutative("aten::add.Tensor", deep, commutative("aten::add.Tensor", any(), any("p")));
  EXPECT_TRUE(fx::find(graph, deep, {.contained = false, .budget = 100000, .stats = &stats}).empty());
  EXPECT_EQ(stats.stop, SearchStop::budget);
}

// ── Sets ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Cost, AnEditCostsThePatternWhateverTheGraph) {
  const Pattern pattern("aten::relu(aten::add.Tensor(x, y))");
  std::vector<std::uint64_t> visited;
  for (const std::size_t blocks : {10u, 1000u, 100000u}) {
    Graph graph = testing::chain(blocks);
    Node& relu = *graph.find_nodes(Op::call_function, "aten::relu").back();
    EXPECT_TRUE(matches(graph, pattern, relu));
    relu.set_target("aten::gelu");
    EXPECT_FALSE(matches(graph, pattern, relu));
    relu.set_target("aten::relu");
    FindStats stats;
    EXPECT_TRUE(matches(graph, pattern, relu, {.stats = &stats}));
    visited.push_back(stats.nodes_visited);
  }
  EXPECT_GT(visited[0], 0u);
  EXPECT_EQ(visited[1], visited[0]);
  EXPECT_EQ(visited[2], visited[0]);
}

TEST(Cost, APreparedPatternIsAskedAgainAfterEachEdit) {
  for (const std::size_t blocks : {10u, 10000u}) {
    Graph graph = testing::chain(blocks);
    NodeMatcher matcher(graph, "aten::relu(aten::add.Tensor(x, y))");
    Node& relu = *graph.find_nodes(Op::call_function, "aten::relu").back();
    Node& sum = relu.arg(0).node();
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(matcher.matches(relu));
      EXPECT_EQ(matcher.match(relu)->anchor().name(), relu.name());
      EXPECT_FALSE(matcher.matches(sum));
      sum.set_target("aten::sub.Tensor");
      EXPECT_FALSE(matcher.match(relu));
      sum.set_target("aten::add.Tensor");
    }
    EXPECT_EQ(matcher.stats().candidates, 15u);
    EXPECT_EQ(matcher.stats().nodes_visited, 5u * 7u) << "whatever the size of the graph";
  }
}

TEST(Cost, APreparedPatternHasItsBudgetForEachQuestion) {
  const Graph graph = testing::chain(100);
  NodeMatcher matcher(graph, "aten::relu(aten::add.Tensor(x, y))", {.budget = 50});
  for (const Node* relu : graph.find_nodes(Op::call_function, "aten::relu")) EXPECT_TRUE(matcher.matches(*relu));
  EXPECT_EQ(matcher.stats().stop, SearchStop::complete);
}

TEST(Sets, OneSweepManyPatterns) {
  const Graph graph = testing::chain(500);
  PatternSet set;
  for (int i = 0; i < 63; ++i) set.add("aten::relu(aten::mul.Tensor(x, " + std::to_string(i) + "))");
  set.add("aten::relu(aten::add.Tensor(x, y))");
  FindStats stats;
  const std::vector<SetMatch> matches = set.find(graph, {.stats = &stats});
  ASSERT_EQ(matches.size(), 500u);
  EXPECT_EQ(matches[0].pattern, 63u);
  EXPECT_EQ(stats.candidates, 500u) << "patterns whose operand cannot fit are not tried";
}

TEST(Sets, ThePatternAddedFirstWins) {
  const Graph graph = graph_of("a = aten::add.Tensor(%x, %x)\nr = aten::relu(%a)\nreturn r");
  PatternSet set({"aten::relu(aten::add.Tensor(x, y))", "aten::relu(x)"});
  ASSERT_EQ(set.find(graph).size(), 1u);
  EXPECT_EQ(set.find(graph)[0].pattern, 0u);
  EXPECT_EQ(PatternSet({"aten::relu(x)", "aten::relu(aten::add.Tensor(x, y))"}).find(graph)[0].pattern, 0u);
  EXPECT_EQ(set.find(graph, {.overlap = Overlap::all}).size(), 2u);
}

// ── Spellings ────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Meaning, MethodsAndFunctionsAreTheirOperators) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_method("relu", {x});
  Node& b = graph.call_function("torch.relu", {a});
  Node& c = graph.call_function("operator.add", {b, x});
  graph.output(c);
  EXPECT_EQ(fx::find(graph, "aten::relu(x)", {.contained = false}).size(), 2u);
  EXPECT_EQ(fx::find(graph, "aten::add.Tensor(aten::relu(aten::relu(x)), x)").size(), 1u);
}

TEST(NodeMatcher, APlaceThatIsGoneIsScannedNoMore) {
  Graph graph = graph_of("a = aten::relu(%x)\nb = aten::neg(%x)\nreturn a");
  NodeMatcher matcher(graph, "a = aten::relu(x)\nb = aten::neg(y)\nreturn a, b");
  Node& anchor = *graph.find("a");
  for (int i = 0; i < 3; ++i) {
    const std::optional<Match> match = matcher.match(anchor);
    ASSERT_TRUE(match);
    Node& other = *match->nodes()[match->nodes()[0] == &anchor];
    ASSERT_FALSE(other.is_erased());
    const auto scope = graph.inserting_before(other);
    graph.call_function("aten::neg", {anchor});
    graph.erase_node(other);
  }
}

TEST(Find, APathIsThatOfItsOwnPart) {
  const Graph graph = graph_of(
      "a = aten::relu(%x)\nb = aten::neg(%a)\nc = aten::sin(%b)\nd = aten::relu(%x)\ne = aten::cos(%d)\n"
      "f = mine.f(%c, %e)\nreturn f");
  const std::vector<Match> matches =
      find(graph, "mine.f(p: dominates(aten::relu(x), #pointwise), q: dominates(aten::relu(x), #pointwise))");
  ASSERT_EQ(matches.size(), 1u);
  for (const auto& [part, path] : {std::pair("p", "c b "), std::pair("q", "e ")}) {
    std::string names;
    for (const Node* node : matches[0].path(part)) names += node->name() + " ";
    EXPECT_EQ(names, path) << part;
  }
}

TEST(Find, TensorsAreOnTheDeviceThatIsWanted) {
  const Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  Shapes shapes(graph);
  for (const char* device : {"cpu", "cuda:0", "cuda:1"}) {
    shapes[*graph.find("x")] = TensorInfo{.sizes = {2}, .device = *parse_device(device)};
    std::string found;
    for (const char* wanted : {"cpu", "cuda", "cuda:0", "cuda:1"}) {
      const std::string pattern = "aten::relu(x: f32[2] on " + std::string(wanted) + ")";
      if (!find(graph, pattern, {.shapes = &shapes}).empty()) found += std::string(wanted) + " ";
    }
    EXPECT_EQ(found, device == std::string("cpu") ? "cpu " : "cuda " + std::string(device) + " ");
  }
}

}  // namespace find_test

}  // namespace fx
