// Which matches share a node with another, and which are the same place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/pattern_set.h>
#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"
#include "tests/support/short_graph.h"

namespace fx::overlaps_test {

using testing::error_of;
using testing::graph_of;

TEST(Overlaps, SeveralWaysAtOnePlaceAreNoError) {
  const Graph graph = graph_of("c = aten::add.Tensor(%x, %x)\nd = aten::add.Tensor(%x, %y)\nreturn (c, d)", "x y");
  const Pattern sum("commutative(aten::add.Tensor(a, b))");
  const std::vector<Match> first = find(graph, sum);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(find(graph, sum, {.overlap = Overlap::error}), first);
  EXPECT_EQ(find(graph, sum, {.overlap = Overlap::all}).size(), 3u);
  // An optional part that takes nothing, and an alternative that says less.
  EXPECT_EQ(find(graph, "(aten::add.Tensor(a, b) | aten::add.Tensor)", {.overlap = Overlap::error}).size(), 2u);
}

TEST(Overlaps, OtherResultsOrPatternsAreAnError) {
  const Graph graph = graph_of("a = aten::relu(%x)\nb = aten::relu(%x)\nreturn (a, b)");
  const FindOptions options{.overlap = Overlap::error};
  EXPECT_EQ(error_of([&] { find(graph, "aten::relu(v), aten::relu(v)", options); }),
            "the matches at a and a share a; choose Overlap::first or Overlap::largest to keep one of them");
  const PatternSet set({"aten::relu(x)", "aten::relu(y)"});
  EXPECT_NE(error_of([&] { set.find(graph, options); }), "no error");
}

/// The same, said of two of all matches.
bool overlap(const Match& a, const Match& b) {
  const bool apart = std::ranges::none_of(a.nodes(), [&](const Node* node) { return b.contains(*node); });
  if (apart) return false;
  const auto results = [](const Match& match) {
    std::vector<Argument> values;
    for (const std::uint32_t root : internal::PatternAccess::of(match).roots) values.push_back(match.values()[root]);
    return values;
  };
  return results(a) != results(b) || !std::ranges::equal(a.nodes(), b.nodes());
}

TEST(Overlaps, RandomPatternsAreRefusedWhereMatchesOverlap) {
  std::size_t refused = 0, several = 0;
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    testing::RandomGraphOptions options;
    options.nodes = 2 + seed % 8;
    options.vocabulary = &testing::copying_vocabulary();
    const Graph graph = testing::random_graph(seed, options);
    const Pattern pattern = testing::random_pattern(seed, {.depth = 2, .constructs = true});
    const std::vector<Match> all = find(graph, pattern, {.overlap = Overlap::all});
    bool any = false;
    for (const Match& a : all) {
      for (const Match& b : all) any |= overlap(a, b);
    }
    std::vector<Match> kept;
    const std::string error = error_of([&] { kept = find(graph, pattern, {.overlap = Overlap::error}); });
    ASSERT_EQ(error != "no error", any) << error << seed << pattern.str() << print_graph(graph);
    refused += any;
    if (any) continue;
    several += kept.size() < all.size();
    ASSERT_EQ(kept, find(graph, pattern)) << seed << pattern.str() << print_graph(graph);
  }
  EXPECT_GT(refused, 50u);
  EXPECT_GT(several, 50u);
}

}  // namespace fx::overlaps_test
