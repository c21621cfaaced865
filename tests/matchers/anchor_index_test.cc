// Sets: patterns that begin alike are told apart by what their operands are, before any search begins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include <fxgraph/matchers/anchor_sweep.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/pattern_set.h>
#include "tests/support/random.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"
#include "tests/support/workloads.h"

namespace fx::anchor_index_test {

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

struct Index {
  void add(const Pattern& pattern, const Graph& graph) {
    programs.emplace_back(pattern, options);
    index.add(static_cast<std::uint32_t>(programs.size() - 1), programs.back().facts(),
              programs.back().facts().plan(internal::PresentCalls(graph)));
  }
  FindOptions options;
  std::deque<internal::CompiledPattern> programs;
  internal::AnchorIndex index;
};

void expect_same_candidates(const Graph& graph, const Index& index) {
  internal::AnchorSweep sweep(index.index, graph);
  std::vector<std::uint32_t> ids;
  for (const Node& node : graph.nodes()) {
    index.index.candidates(node, ids);
    ASSERT_EQ(sweep.candidates(node), ids) << node.name();
  }
}

// Calls written with keywords, and nodes out of order, which a graph may hold between two edits.
void disturb(Graph& graph, testing::Random& random) {
  for (Node& node : graph.nodes()) {
    if (node.is_call("aten::add.Tensor") && node.args().size() == 2 && random.below(4) == 0) {
      const Argument first = node.arg(0), second = node.arg(1);
      node.set_args_kwargs(std::vector<Argument>{first}, std::vector<NamedArgument>{{"other", second}});
    }
  }
  for (Node* relu : graph.find_nodes(Op::call_function, "aten::relu")) {
    if (random.below(8) == 0 && relu->next() && !relu->next()->is(Op::output)) relu->next()->append(*relu);
  }
}

TEST(AnchorSweep, AnswersAsTheIndexDoes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    testing::Random random(seed);
    Graph graph = testing::random_graph(seed, {.nodes = 60});
    disturb(graph, random);
    Index index;
    for (std::uint64_t i = 0; i < 20; ++i) index.add(testing::random_pattern(100 * seed + i), graph);
    expect_same_candidates(graph, index);
  }
}

TEST(AnchorSweep, TellsNestedCallsApart) {
  for (const Graph& graph : {testing::chain(300), testing::nested_relus(50), testing::model_mix(400)}) {
    Index index;
    for (const std::string& text : testing::patterns_not_in_chain(200)) index.add(text, graph);
    for (const char* text : {"aten::relu(aten::relu(aten::relu(x)))", "aten::relu(aten::add.Tensor(x, y))",
                             "aten::mul.Tensor(aten::relu(aten::add.Tensor(x, y)), aten::relu(z))"})
      index.add(text, graph);
    expect_same_candidates(graph, index);
  }
}

}  // namespace fx::anchor_index_test
