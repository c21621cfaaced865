// Where a driver looks again after an edit: whatever the notes of earlier walks, everywhere that a path leads; and at
// a cost that does not multiply where many paths meet.
#include <fxgraph/rewriter/revisit.h>

#include <gtest/gtest.h>

#include <set>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"
#include "tests/support/short_graph.h"

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

// From each of its nodes: any of them may be what an edit puts there.
TEST(RevisitPaths, LeadFromEveryPartOfAMatchToItsStart) {
  std::size_t matches = 0, of_several_results = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    testing::RandomGraphOptions options;
    options.nodes = 40;
    options.inputs = 1 + seed % 2;
    options.shape = static_cast<testing::Shape>(seed % 4);
    options.vocabulary = seed % 3 ? &testing::pointwise_vocabulary() : &testing::copying_vocabulary();
    Graph graph = testing::random_graph(seed, options);
    const Pattern pattern = testing::random_pattern(
        seed, {.depth = 2 + static_cast<int>(seed % 2), .uses = false, .constructs = seed % 3 == 0});
    const PatternFacts facts(internal::PatternAccess::of(pattern));
    const internal::SearchPlan plan = facts.plan(internal::PresentCalls(graph));
    RevisitPaths paths;
    if (!paths.add(facts, plan)) continue;
    paths.merge();
    for (const Match& match : find(graph, pattern, {.overlap = Overlap::all})) {
      ++matches;
      of_several_results += pattern.num_outputs() > 1;
      for (Node* part : match.nodes()) {
        RevisitPaths::Visited visited;
        bool arrives = false;
        paths.walk(*part, visited,
                   [&](Node& place) { arrives |= &place == match.values()[plan.anchor].node_or_null(); });
        ASSERT_TRUE(arrives) << "seed " << seed << " from " << part->name() << "\n" << pattern.str();
      }
    }
  }
  EXPECT_GT(matches, 3000u);
  EXPECT_GT(of_several_results, 300u);
}

// What each walk looks at is told by the patterns alone.
TEST(RevisitPaths, StayAwayFromWhatAllShare) {
  const auto arrivals = [](int layers) {
    std::string body;
    for (int i = 0; i < layers; ++i) {
      const std::string n = std::to_string(i), x = i == 0 ? "x" : "s" + std::to_string(i - 1);
      body += "m" + n + " = aten::mul.Tensor(%" + x + ", %w)\nr" + n + " = aten::relu(%m" + n + ")\nt" + n +
              " = aten::tanh(%w)\ns" + n + " = aten::sub.Tensor(%r" + n + ", %t" + n + ")\n";
    }
    Graph graph = testing::graph_of(body + "return s" + std::to_string(layers - 1), "x w");
    RevisitPaths paths = paths_of(kPatterns, graph);
    paths.merge();
    std::size_t count = 0;
    for (Node& node : graph.nodes()) {
      RevisitPaths::Visited visited;
      if (!node.is(Op::placeholder)) paths.walk(node, visited, [&](Node&) { ++count; });
    }
    return count;
  };
  const std::size_t few = arrivals(100);
  EXPECT_GT(few, 100u);
  EXPECT_LE(arrivals(1000), 11 * few);
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
