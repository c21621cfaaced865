#include "matchers/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/random_graph.h"
#include "tests/support/short_graph.h"

namespace fx {
namespace {

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
            "r <- a <- c: wants one use of c, it has two (a, d)");
  EXPECT_EQ(why(graph, "aten::relu(aten::add.Tensor(conv: aten::conv2d(x, w), y))", "r"),
            "r <- a <- c: c is used outside the match too, by d");
}

TEST(Explain, TheDeepestFailureIsTold) {
  const Graph graph = graph_of(kResidual, "x y w");
  EXPECT_EQ(why(graph, "aten::relu(aten::add.Tensor(aten::mul.Tensor(x, w), y))", "r"),
            "r <- a: argument self: wants aten::mul.Tensor, found c (aten::conv2d)");
  EXPECT_EQ(why(graph, "aten::gelu(x)", "r"), "r: wants aten::gelu, found r (aten::relu)");
  EXPECT_EQ(why(graph, "aten::relu(x: get_attr)", "r"),
            "r: argument self: wants a get_attr, found a (aten::add.Tensor)");
  EXPECT_EQ(why(graph, "aten::relu(aten::add.Tensor(x, x))", "r"),
            "r <- a: argument self: wants y (placeholder y) again, as x, found c (aten::conv2d)");
}

TEST(Explain, LiteralsDefaultsAndLists) {
  const Graph graph = graph_of(
      "c = aten::conv2d(%x, %w, None, [2, 2])\nk = aten::clamp(%c, 0.0, 6.5)\nd = aten::cat([%x, %w], 1)\nreturn (k, "
      "d)",
      "x w");
  EXPECT_EQ(why(graph, "aten::clamp(x, 0.0, 6.0)", "k"), "k: argument max: wants 6.0, found 6.5");
  EXPECT_EQ(why(graph, "aten::conv2d(x, w)", "c"),
            "c: wants stride=1, its default, found [2, 2]; write ... to leave it open");
  EXPECT_EQ(why(graph, "aten::cat([x, y, z], 1)", "d"),
            "d: wants 3 arguments, found 2; write ... to leave the rest open");
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
  EXPECT_EQ(near_misses(graph, "aten::relu(aten::add.Tensor(x, 1))"),
            "10 places tried, 0 fit\n"
            "10 × relu <- add: argument other: wants 1, found y (placeholder y)\n");
  EXPECT_EQ(near_misses(graph, "aten::relu(aten::sigmoid(x))"),
            "10 places tried, 0 fit\n"
            "the graph has no aten::sigmoid\n"
            "10 × relu: argument self: wants aten::sigmoid, found add (aten::add.Tensor)\n");
  EXPECT_EQ(near_misses(graph, "aten::relu(aten::add.Tensor(x, y))"), "10 places tried, 10 fit\n");
  EXPECT_EQ(near_misses(graph, "aten::gelu(x)"), "0 places tried, 0 fit\nthe graph has no aten::gelu\n");
}

TEST(Explain, CostsNothingWhenOff) {
  // The same counters with and without an explanation having been asked for before.
  const Graph graph = testing::chain(100);
  const Pattern pattern("aten::relu(aten::add.Tensor(x, 1))");
  FindStats before;
  FindStats after;
  find(graph, pattern, {.stats = &before});
  near_misses(graph, pattern);
  find(graph, pattern, {.stats = &after});
  EXPECT_EQ(before.nodes_visited, after.nodes_visited);
  EXPECT_EQ(before.candidates, 100u);
}

}  // namespace
}  // namespace fx
