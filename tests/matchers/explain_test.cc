#include <fxgraph/matchers/explain.h>
#include <fxgraph/text/print.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/random.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"
#include "tests/support/short_graph.h"

namespace fx::explain_test {

using namespace match;
using testing::graph_of;

std::string why(const Graph& graph, const Pattern& pattern, const char* node, FindOptions options = {}) {
  return explain(graph, pattern, *graph.find(node), options);
}

const char* const kResidual =
    "c = aten::conv2d(%x, %w)\na = aten::add.Tensor(%c, %y)\nr = aten::relu(%a)\nd = aten::cat([%c, %a])\nreturn (r, "
    "d)";

TEST(Explain, UsesAreCountedAndNamed) {
  const Graph graph = graph_of(kResidual, "x y w");
  EXPECT_EQ(why(graph, "aten::relu(aten::add.Tensor(conv: aten::conv2d(x, w).used_once, y))", "r"),
            "r <- a <- c: wants one use of c, it has two (a, d); r <- a: a is used outside the match too, by d");
  EXPECT_EQ(why(graph, "aten::relu(aten::add.Tensor(conv: aten::conv2d(x, w), y))", "r"),
            "r <- a <- c: c is used outside the match too, by d; r <- a: a is used outside the match too, by d");
}

TEST(Explain, AllObstaclesAreTold) {
  const Graph graph = graph_of(kResidual, "x y w");
  EXPECT_EQ(
      why(graph, "aten::relu(aten::add.Tensor(aten::mul.Tensor(x, w), y))", "r"),
      "r <- a: argument self: wants aten::mul.Tensor, found c (aten::conv2d); r <- a: a is used outside the match "
      "too, by d");
  EXPECT_EQ(why(graph, "aten::gelu(x)", "r"), "r: wants aten::gelu, found r (aten::relu)");
  EXPECT_EQ(why(graph, "aten::relu(x: get_attr)", "r"),
            "r: argument self: wants a get_attr, found a (aten::add.Tensor)");
  EXPECT_EQ(why(graph, "aten::relu(aten::add.Tensor(x, x))", "r"),
            "r <- a: argument self: wants y (placeholder y) again, as x, found c (aten::conv2d); r <- a: a is used "
            "outside the match too, by d");
}

TEST(Explain, LiteralsDefaultsAndLists) {
  const Graph graph = graph_of(
      "c = aten::conv2d(%x, %w, None, [2, 2])\nk = aten::clamp(%c, 0.0, 6.5)\nd = aten::cat([%x, %w], 1)\nreturn (k, "
      "d)",
      "x w");
  EXPECT_EQ(why(graph, "aten::clamp(x, 0.0, 6.0)", "k"), "k: argument max: wants 6.0, found 6.5");
  EXPECT_EQ(why(graph, "aten::conv2d(x, w)", "c"),
            "c: wants stride=[1, 1], its default, found [2, 2]; write ... to leave it open");
  EXPECT_EQ(why(graph, "aten::cat([x, y, z], 1)", "d"),
            "d: wants 3 elements, found 2; write ... to leave the rest open");
  EXPECT_EQ(why(graph, "aten::cat([x, y], d: str)", "d"), "d: argument dim: wants a string, found 1");
}

TEST(Explain, ConditionsSayWhatTheyWant) {
  const Graph graph = graph_of("a = aten::add.Tensor(%x, 3)\nreturn a");
  const Pattern even = op("aten::add.Tensor", any("x"),
                          lit_int("n").where([](const Argument& n) { return n.as_int() % 2 == 0; }, "an even number"));
  EXPECT_EQ(why(graph, even, "a"), "a: argument other: wants an even number, found 3");
}

TEST(Explain, AFitIsTold) {
  const Graph graph = graph_of("a = aten::add.Tensor(%x, 3)\nreturn a");
  EXPECT_EQ(why(graph, "aten::add.Tensor(v, n: int)", "a"), "a: fits; v is x, n is 3");
}

TEST(NearMisses, ReasonsAreGrouped) {
  Graph graph = testing::chain(10);
  EXPECT_EQ(
      near_misses(graph, "aten::relu(aten::add.Tensor(x, 1))"),
      "10 places tried, 0 fit\n"
      "10 × relu <- add: argument other: wants 1, found y (placeholder y); also at relu_1, relu_2, relu_3, relu_4 "
      "and 5 more\n");
  EXPECT_EQ(
      near_misses(graph, "aten::relu(aten::sigmoid(x))"),
      "10 places tried, 0 fit\n"
      "the graph has no aten::sigmoid\n"
      "10 × relu: argument self: wants aten::sigmoid, found add (aten::add.Tensor); also at relu_1, relu_2, relu_3, "
      "relu_4 and 5 more\n");
  EXPECT_EQ(near_misses(graph, "aten::relu(aten::add.Tensor(x, y))"), "10 places tried, 10 fit\n");
  EXPECT_EQ(near_misses(graph, "aten::gelu(x)"), "0 places tried, 0 fit\nthe graph has no aten::gelu\n");
}

TEST(NearMisses, TheOperatorIsThereWithOtherArguments) {
  const Graph graph = graph_of("a = torch.add(%x, %y, alpha=2)\nb = aten::mean(%a)\nreturn b", "x y");
  EXPECT_EQ(near_misses(graph, "aten::add(_, _, 2)"),
            "1 place tried, 0 fit\n1 × a: wants other arguments of a: aten::add.Tensor takes 2 by position, write "
            "alpha=… for the next\n");
  EXPECT_EQ(near_misses(graph, "aten::mean(_, [1])"),
            "1 place tried, 0 fit\n1 × b: wants other arguments of b: aten::mean takes 1 by position, write dtype=… "
            "for the next\n");
  EXPECT_EQ(near_misses(graph, "aten::mean(_, keepdim=True, dim=[1])"),
            "1 place tried, 0 fit\n1 × b: wants other arguments of b: aten::mean has no argument keepdim\n");
}

TEST(Explain, WhatIsTheSameInPlace) {
  const Graph graph = graph_of(
      "a = aten::sin(%x)\nb = aten::relu_(%a)\nc = aten::relu_(%x)\nd = aten::sin(%x)\ne = aten::tanh_(%d)\nf = "
      "aten::add.Tensor(%d, %e)\nreturn (b, c, f)",
      "x");
  EXPECT_EQ(why(graph, "aten::relu(x)", "b"), "b: fits; x is a");
  EXPECT_EQ(why(graph, "aten::relu(x)", "c"),
            "c: wants aten::relu, found c (aten::relu_), the same in place; x holds or reads what it writes");
  EXPECT_EQ(why(graph, "aten::tanh(x)", "e"),
            "e: wants aten::tanh, found e (aten::tanh_), the same in place; f holds or reads what it writes");
}

TEST(NearMisses, ModulesThatNobodyLooksIntoAreNamed) {
  const Graph graph = graph_of("a = call_module[target=net](%x)\nb = call_module[target=own](%a)\nreturn b");
  const auto outer = std::make_shared<const Graph>(graph_of("a = call_module[target=act](%x)\nreturn a"));
  const auto inner = std::make_shared<const Graph>(graph_of("a = torch.relu(%x)\nreturn a"));
  FindOptions options;
  EXPECT_EQ(near_misses(graph, "aten::relu(x)", options),
            "0 places tried, 0 fit\nthe graph has no aten::relu; nobody looks into the modules net, own\n");
  options.modules.evaluated = [&](std::string_view path) {
    return path == "net" ? outer : path == "net.act" ? inner : nullptr;
  };
  EXPECT_EQ(near_misses(graph, "aten::relu(x)", options), "1 place tried, 1 fits\n");
  EXPECT_EQ(near_misses(graph, "aten::tanh(x)", options),
            "0 places tried, 0 fit\nthe graph has no aten::tanh; nobody looks into the modules own\n");
  options.leaves = true;
  EXPECT_EQ(near_misses(graph, "aten::tanh(x)", options),
            "0 places tried, 0 fit\nthe graph has no aten::tanh; modules are leaves here: net, own\n");
}

TEST(NearMisses, SeveralObstaclesOfOnePlace) {
  const Graph graph = graph_of(
      "w = get_attr[target=w]()\nc = aten::conv2d(%x, %w, None, [2, 2])\nk = aten::clamp(%c, 0.0, 6.5)\nl = "
      "aten::clamp(%x, 0.0, 6.5)\nreturn (k, l, c)");
  EXPECT_EQ(near_misses(graph, "aten::clamp(aten::conv2d(x, w: get_attr), 0.0, 6.0)"),
            "2 places tried, 0 fit\n"
            "1 × 2 obstacles, the first place is l\n"
            "    l: argument max: wants 6.0, found 6.5\n"
            "    l: argument self: wants aten::conv2d, found x (placeholder x)\n"
            "1 × 3 obstacles, the first place is k\n"
            "    k: argument max: wants 6.0, found 6.5\n"
            "    k <- c: wants stride=[1, 1], its default, found [2, 2]; write ... to leave it open\n"
            "    k <- c: c is used outside the match too, by output\n");
}

TEST(Explain, TheAlternativesAreNamedTogether) {
  const Graph graph = graph_of("a = aten::sigmoid(%x)\nb = aten::neg(%a)\nreturn b");
  EXPECT_EQ(why(graph, "aten::neg(aten::relu(x) | aten::gelu(x))", "b"),
            "b: argument self: wants aten::relu or aten::gelu, found a (aten::sigmoid)");
}

TEST(Explain, WhatIsBesideTheResult) {
  const Graph graph = graph_of("a = aten::relu(%x)\nb = aten::neg(%x)\nc = aten::sin(%y)\nreturn (a, b, c)", "x y");
  EXPECT_EQ(why(graph, "aten::relu(v), aten::sin(v)", "a"),
            "a <- x: wants x to be used by aten::sin too, it is used by a, b");
}

TEST(Explain, ResultsJoinedByWhatIsNoNode) {
  const Graph graph = graph_of("m = aten::mul.Tensor(%x, 2)\nr = aten::sigmoid(%m)\nreturn r");
  EXPECT_EQ(why(graph, "aten::mul.Tensor(b, a), aten::relu(a)", "m"), "the graph has no aten::relu");
  EXPECT_EQ(near_misses(graph, "aten::mul.Tensor(b, a), aten::relu(a)"),
            "1 place tried, 0 fit\nthe graph has no aten::relu\n1 × the graph has no aten::relu\n");
  EXPECT_EQ(why(graph, "aten::mul.Tensor(b, a), aten::sigmoid(a)", "m"),
            "r: argument self: wants 2 again, as a, found m (aten::mul.Tensor)");
  const Graph list = graph_of("c = aten::cat([%x, 1])\nreturn c");
  EXPECT_EQ(why(list, "aten::cat(a), aten::relu(a)", "c"), "the graph has no aten::relu");
}

/// Several results that share names, which may stand for literals and lists.
std::string random_results(testing::Random& random) {
  constexpr const char* kOperands[] = {"a", "a", "b", "c", "_", "2", "l: literal", "[a, ...]", "[b, c]", "d", "[...d]"};
  constexpr const char* kCalls[] = {"aten::mul.Tensor(1, 2)", "aten::add.Tensor(1, 2)", "aten::relu(1)",
                                    "aten::neg(1)",           "aten::cat(1, ...)",      "aten::sigmoid(1)"};
  std::string text;
  for (std::size_t i = 0, count = 2 + random.below(2); i < count; ++i) {
    text += i > 0 ? ", " : "";
    for (const char c : std::string_view(kCalls[random.below(std::size(kCalls))])) {
      if (c != '1' && c != '2') text += c;
      if (c == '1' && random.chance(10)) {
        text += "unordered[a, ...]";
      } else if (c == '1' || c == '2') {
        text += kOperands[random.below(std::size(kOperands))];
      }
    }
  }
  return text;
}

Graph graph_with_literals(std::uint64_t seed) {
  static const std::vector<testing::OperatorForm> forms = {
      {Op::call_function, "aten::add.Tensor", "t2"},
      {Op::call_function, "aten::mul.Tensor", "tt"},
      {Op::call_function, "aten::mul.Tensor", "ti"},
      {Op::call_function, "aten::cat", "T"},
      {Op::call_function, "aten::relu"},
      {Op::call_function, "aten::cat", "I"},
  };
  testing::RandomGraphOptions options;
  options.nodes = 1 + seed % 8;
  options.vocabulary = seed % 3 == 0 ? &testing::copying_vocabulary() : &forms;
  return testing::random_graph(seed, options);
}

/// How many nodes the pattern could not start at, each for a reason.
std::size_t count_reasons(const Graph& graph, const Pattern& pattern) {
  const bool found = !find(graph, pattern).empty();
  EXPECT_FALSE(near_misses(graph, pattern).empty());
  std::size_t reasons = 0;
  for (const Node& node : graph.nodes()) {
    const std::string reason = explain(graph, pattern, node);
    EXPECT_NE(reason, "") << node.name();
    const bool fits = reason.starts_with(node.name() + ": fits");
    EXPECT_TRUE(found || !fits) << reason;
    reasons += !fits;
  }
  return reasons;
}

TEST(Explain, RandomPatternsOfSeveralResults) {
  std::size_t reasons = 0;
  for (std::uint64_t seed = 1; seed <= 6000 && !::testing::Test::HasFailure(); ++seed) {
    testing::Random random(seed);
    const Graph graph = graph_with_literals(seed);
    const std::string text = random_results(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text + "\n" + print_graph(graph));
    reasons += count_reasons(graph, Pattern(text));
    reasons += count_reasons(graph, testing::random_pattern(seed, {.constructs = true}));
  }
  EXPECT_GT(reasons, 50000u);
}

TEST(Explain, FactsAboutValues) {
  const Graph graph =
      graph_of("s = aten::softmax.int(%x, 1)\na = aten::mul.Tensor(%s, %s)\nb = aten::sum(%a)\nreturn b");
  Shapes shapes(graph);
  shapes[*graph.find("x")] = *parse_tensor_info("2x3:float16");
  FindOptions options{.shapes = &shapes};
  EXPECT_EQ(why(graph, "aten::softmax.int(x: f32[N, 4], 1)", "s", options),
            "s: argument self: wants f32[N, 4], found x of float16[2, 3]; s <- x: wants 4, found 3");
  EXPECT_EQ(why(graph, "aten::softmax.int(x, 1).is(f32)", "s", options),
            "s: wants f32, and nothing is known of s (aten::softmax.int)");
  EXPECT_EQ(why(graph, "aten::softmax.int(k: constant, 1)", "s"),
            "s: argument self: wants a constant, found x (placeholder x)");
  EXPECT_EQ(why(graph, "aten::sum(dominates(aten::relu(x), #pointwise))", "b"),
            "b: wants aten::relu through a pointwise operator, found a (aten::mul.Tensor)");
  EXPECT_EQ(why(graph, "aten::sum(!aten::mul.Tensor)", "b"),
            "b <- a: wants anything but aten::mul.Tensor, found a (aten::mul.Tensor)");
}

TEST(Explain, CostsNothingWhenOff) {
  const Graph graph = testing::chain(100);
  const Pattern pattern("aten::relu(aten::add.Tensor(x, 1))");
  FindStats stats;
  find(graph, pattern, {.stats = &stats});
  EXPECT_EQ(stats.candidates, 100u);
  EXPECT_EQ(stats.explained, 0u) << "every candidate failed, and none was looked into";
  const std::uint64_t visited = stats.nodes_visited;
  near_misses(graph, pattern);
  find(graph, pattern, {.stats = &stats});
  EXPECT_EQ(stats.nodes_visited, visited);
}

}  // namespace fx::explain_test
