// Sets: patterns that begin alike are told apart by what their operands are, before any search begins.
#include "matchers/anchor_index.h"

#include <gtest/gtest.h>

#include "matchers/pattern_set.h"
#include "tests/support/random_graph.h"
#include "tests/support/workloads.h"

namespace fx {
namespace {

TEST(AnchorIndex, PatternsThatNearlyFitCostNoSearch) {
  const Graph graph = testing::chain(1000);
  PatternSet set;
  for (const std::string& text : testing::patterns_not_in_chain(200)) set.add(text);
  FindStats stats;
  EXPECT_TRUE(set.find(graph, {.stats = &stats}).empty());
  EXPECT_EQ(stats.candidates, 0u);
}

TEST(AnchorIndex, ArgumentsGivenByKeywordAreLookedAtByTheSearch) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& a = graph.call_function("aten::relu", {x});
  Node& b = graph.call_function("aten::add.Tensor", {y}, {{"other", a}});
  graph.output(graph.call_function("aten::relu", {}, {{"self", b}}));
  const PatternSet set(
      {"aten::relu(aten::add.Tensor(u, aten::relu(v)))", "aten::relu(aten::add.Tensor(aten::relu(v), u))"});
  const std::vector<SetMatch> matches = set.find(graph);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].pattern, 0u);
}

}  // namespace
}  // namespace fx
