#include <fxgraph/analysis/use_def.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/analysis_oracles.h"
#include "tests/support/random_graph.h"

namespace fx::use_def_test {

using testing::all_nodes;
using testing::closure;
using ::testing::ElementsAre;
using testing::random_graph;
using testing::random_options;

/// Random edges from earlier to later nodes.
OrderEdges random_order(const Graph& graph, std::uint64_t seed) {
  testing::Random random(seed);
  const std::vector<Node*> nodes = all_nodes(graph);
  std::vector<OrderEdge> edges;
  for (std::size_t i = 0; nodes.size() > 1 && i < nodes.size() / 4; ++i) {
    const std::size_t a = random.below(nodes.size() - 1);
    edges.push_back({nodes[a], nodes[a + 1 + random.below(nodes.size() - a - 1)]});
  }
  return OrderEdges(graph, edges);
}

TEST(Reachability, AgreesWithTheClosureOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 40));
    const OrderEdges edges = random_order(graph, seed);
    const OrderEdges* order = seed % 2 ? &edges : nullptr;
    ASSERT_EQ(testing::disagreement_on_reachability(graph, order), "") << seed;
  }
}

TEST(Reachability, LooksOnlyBetweenTheTwo) {
  const Graph graph = testing::chain(10'000);
  const std::vector<Node*> nodes = all_nodes(graph);
  Reachability reaches(graph);
  EXPECT_TRUE(reaches(*nodes[15'000], *nodes[15'010]));
  EXPECT_LE(reaches.visited(), 10u);
  EXPECT_FALSE(reaches(*nodes[15'010], *nodes[15'000]));
  EXPECT_EQ(reaches.visited(), 0u);
}

TEST(Slices, AgreeWithTheClosureOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 40));
    const OrderEdges edges = random_order(graph, seed);
    const OrderEdges* order = seed % 2 ? &edges : nullptr;
    const auto reaches = closure(graph, order);
    testing::Random random(seed);
    const std::vector<Node*> nodes = all_nodes(graph);
    std::vector<Node*> roots;
    for (std::size_t i = 0; i < 1 + seed % 3; ++i) roots.push_back(nodes[random.below(nodes.size())]);
    std::vector<Node*> before, after;
    for (Node* node : nodes) {
      if (std::any_of(roots.begin(), roots.end(), [&](Node* r) { return reaches[node->id()][r->id()]; }))
        before.push_back(node);
      if (std::any_of(roots.begin(), roots.end(), [&](Node* r) { return reaches[r->id()][node->id()]; }))
        after.push_back(node);
    }
    ASSERT_EQ(backward_slice(graph, roots, order), before) << seed;
    ASSERT_EQ(forward_slice(graph, roots, order), after) << seed;
  }
}

TEST(Slices, OfNothingIsNothing) {
  const Graph graph = testing::chain(2);
  EXPECT_TRUE(backward_slice(graph, {}).empty());
  EXPECT_TRUE(forward_slice(graph, {}).empty());
}

TEST(CriticalPath, AgreesWithEveryPathOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 30));
    const auto cost = [](const Node& node) { return static_cast<double>(node.id() * 7 % 5); };
    const CriticalPath path = critical_path(graph, cost);
    double sum = 0;
    for (std::size_t i = 0; i < path.nodes.size(); ++i) {
      sum += cost(*path.nodes[i]);
      ASSERT_EQ(path.slack[*path.nodes[i]], 0.0);
      if (i == 0) continue;
      const std::vector<Node*> inputs = path.nodes[i]->all_input_nodes();
      ASSERT_THAT(inputs, ::testing::Contains(path.nodes[i - 1]));
    }
    ASSERT_EQ(sum, path.length);
    // Longest path through each node, by relaxing until nothing changes.
    NodeMap<double> until(graph, 0.0), from(graph, 0.0);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Node& node : graph.nodes()) {
        node.for_each_input([&](Node& input) {
          if (until[input] + cost(input) > until[node]) until[node] = until[input] + cost(input), changed = true;
          if (from[node] + cost(node) > from[input]) from[input] = from[node] + cost(node), changed = true;
        });
      }
    }
    double longest = 0;
    for (const Node& node : graph.nodes()) longest = std::max(longest, until[node] + cost(node) + from[node]);
    ASSERT_EQ(path.length, longest) << seed;
    const Node* first = nullptr;
    for (const Node& node : graph.nodes()) {
      if (!first && until[node] + cost(node) == longest) first = &node;
    }
    ASSERT_EQ(path.nodes.back(), first) << seed;
    for (const Node& node : graph.nodes()) {
      ASSERT_DOUBLE_EQ(path.slack[node], longest - (until[node] + cost(node) + from[node])) << seed;
    }
  }
}

TEST(CriticalPath, CountsNodesWithoutCosts) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x});
  Node& b = graph.call_function("aten::add.Tensor", {x, a});
  Node& out = graph.output(b);
  EXPECT_THAT(critical_path(graph).nodes, ElementsAre(&x, &a, &b, &out));
  EXPECT_EQ(critical_path(graph).length, 4.0);
}

TEST(CriticalPath, GoesByTheFirstOfTheLongest) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x});
  Node& b = graph.call_function("aten::neg", {x});
  Node& c = graph.call_function("aten::add.Tensor", {b, a});
  EXPECT_THAT(critical_path(graph).nodes, ElementsAre(&x, &b, &c));
  // Where the way there costs nothing it is part of the path all the same.
  const auto last = [&](const Node& node) { return &node == &c ? 1.0 : 0.0; };
  EXPECT_THAT(critical_path(graph, last).nodes, ElementsAre(&x, &b, &c));
  EXPECT_EQ(a.num_users(), 1u);
}

TEST(Levels, AreTheLongestPathsFromTheInputs) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  Node& a = graph.call_function("aten::relu", {x});
  Node& b = graph.call_function("aten::add.Tensor", {y, a});
  const auto level = levels(graph);
  EXPECT_EQ(level[y], 0u);
  EXPECT_EQ(level[a], 1u);
  EXPECT_EQ(level[b], 2u);
}

TEST(UseDef, MillionNodeGraphs) {
  Graph chain = testing::chain(333'333);
  Node* x = chain.placeholders()[0];
  Node* out = chain.output_node();
  EXPECT_EQ(forward_slice(*x).size(), chain.size() - 1);
  EXPECT_EQ(backward_slice(*out).size(), chain.size());
  EXPECT_TRUE(Reachability(chain)(*x, *out));
  EXPECT_EQ(critical_path(chain).length, static_cast<double>(chain.size() - 1));
  Graph fan = testing::fan(1'000'000);
  EXPECT_EQ(forward_slice(*fan.placeholders()[0]).size(), fan.size());
  EXPECT_EQ(critical_path(fan).length, 3.0);
}

TEST(CriticalPath, OfNodesThatCostNothingIsAPath) {
  const Graph graph = testing::chain(3);
  const CriticalPath path = critical_path(graph, [](const Node&) { return 0.0; });
  EXPECT_EQ(path.length, 0.0);
  EXPECT_FALSE(path.nodes.empty());
}

}  // namespace fx::use_def_test
