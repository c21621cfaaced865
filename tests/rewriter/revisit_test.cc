// Where a driver looks again after an edit: whatever the notes of earlier walks, everywhere that a path leads; and at
// a cost that does not multiply where many paths meet.
#include <fxgraph/rewriter/revisit.h>

#include <gtest/gtest.h>

#include <set>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::revisit_test {

using internal::PatternFacts;
using internal::RevisitPaths;

RevisitPaths paths_of(const std::vector<std::string>& patterns, const Graph& graph) {
  RevisitPaths paths;
  for (const std::string& text : patterns) {
    const Pattern pattern(text);
    const PatternFacts facts(internal::PatternAccess::of(pattern));
    EXPECT_TRUE(paths.add(facts, facts.plan(internal::PresentCalls(graph)))) << text;
  }
  return paths;
}

const std::vector<std::string> kPatterns = {
    "aten::sub.Tensor(aten::relu(aten::mul.Tensor(x, y)), aten::tanh(x))",
    "aten::add.Tensor(aten::neg(x) | aten::relu(aten::neg(x)), aten::mul.Tensor(x, y))",
    "aten::mul.Tensor(aten::add.Tensor(x, y), aten::sub.Tensor(x, y))",
};

TEST(RevisitPaths, LeadWhereverTheNotesOfOtherWalksAllow) {
  std::size_t arrivals = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    testing::RandomGraphOptions options;
    options.nodes = 30;
    Graph graph = testing::random_graph(seed, options);
    const RevisitPaths plain = paths_of(kPatterns, graph);
    RevisitPaths merged = plain;
    merged.merge();
    RevisitPaths::Visited visited;
    std::set<const Node*> expected, found;
    for (Node& node : graph.nodes()) {
      RevisitPaths::Visited fresh;
      plain.walk(node, fresh, [&](Node& place) { expected.insert(&place); });
      merged.walk(node, visited, [&](Node& place) { found.insert(&place); });
      ASSERT_EQ(found, expected) << "seed " << seed << " from " << node.name();
    }
    arrivals += expected.size();
    visited.clear();
    std::set<const Node*> after_clearing;
    for (Node& node : graph.nodes()) merged.walk(node, visited, [&](Node& place) { after_clearing.insert(&place); });
    ASSERT_EQ(after_clearing, expected) << "seed " << seed;
  }
  EXPECT_GT(arrivals, 2000u);
}

// The short way to the anchor leads through what the pattern says is not there.
TEST(RevisitPaths, DoNotRelyOnWhatIsNegated) {
  Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = placeholder[target=y]
    %sin = call_function[target=aten::sin](args = (%x,))
    %neg = call_function[target=aten::neg](args = (%sin,))
    %tanh = call_function[target=aten::tanh](args = (%neg,))
    %mul = call_function[target=aten::mul.Tensor](args = (%y, %tanh))
    return mul)");
  const RevisitPaths paths =
      paths_of({"aten::mul.Tensor(!aten::relu(s), aten::tanh(aten::neg(s: aten::sin(a))))"}, graph);
  RevisitPaths::Visited visited;
  std::set<std::string> found;
  paths.walk(*graph.find("sin"), visited, [&](Node& place) { found.insert(place.name()); });
  EXPECT_TRUE(found.contains("mul"));
}

// From one of the calls down to x and up again, twice: a hundred to the third, if each path were walked.
TEST(RevisitPaths, ThatMeetAreWalkedOnce) {
  constexpr std::size_t kCalls = 100;
  Graph graph;
  Node& x = graph.placeholder("x");
  for (std::size_t i = 0; i < kCalls; ++i) graph.call_function("aten::neg", {x});
  graph.output(x);
  RevisitPaths paths = paths_of({"aten::sub.Tensor(aten::add.Tensor(aten::relu(x), aten::tanh(x)), "
                                 "aten::mul.Tensor(aten::neg(x) | aten::exp(x), aten::sin(x)))"},
                                graph);
  paths.merge();
  RevisitPaths::Visited visited;
  std::size_t arrivals = 0;
  for (Node& node : graph.nodes()) paths.walk(node, visited, [&](Node&) { ++arrivals; });
  EXPECT_LE(arrivals, 10 * kCalls);
}

}  // namespace fx::revisit_test
