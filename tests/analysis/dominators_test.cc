#include <fxgraph/analysis/dominators.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <fxgraph/analysis/regions.h>
#include <fxgraph/ir/node_map.h>
#include "tests/analysis/boost_dominators.h"
#include "tests/support/random_graph.h"

namespace fx::dominators_test {

using ::testing::HasSubstr;
using testing::random_graph;
using testing::random_options;
using testing::RandomGraphOptions;
using ::testing::ThrowsMessage;

void expect_children_agree(const Graph& graph, const DominatorTree& tree) {
  std::size_t listed = 0;
  for (Node& root : tree.roots()) {
    ASSERT_EQ(tree.immediate(root), nullptr);
    ++listed;
  }
  for (const Node& node : graph.nodes()) {
    for (Node& child : tree.children(node)) {
      ASSERT_EQ(tree.immediate(child), &node);
      ++listed;
    }
    std::size_t dominated = 0;
    for (Node& inside : tree.dominated(node)) {
      ASSERT_TRUE(tree.dominates(node, inside));
      ++dominated;
    }
    std::size_t expected = 0;
    for (const Node& other : graph.nodes()) expected += tree.dominates(node, other);
    ASSERT_EQ(dominated, expected);
  }
  ASSERT_EQ(listed, graph.size());
}

void expect_frontiers_agree(const Graph& graph, const DominatorTree& tree, bool post) {
  const auto pairs = tree.frontiers();
  const std::set<std::pair<Node*, Node*>> found(pairs.begin(), pairs.end());
  ASSERT_EQ(found.size(), pairs.size()) << "a pair was listed twice";
  std::set<std::pair<Node*, Node*>> expected;
  for (const Node& node : graph.nodes()) {
    Node* user = const_cast<Node*>(&node);
    user->for_each_input([&](Node& input) {
      Node &from = post ? *user : input, &to = post ? input : *user;
      for (const Node& a : graph.nodes()) {
        if (tree.dominates(a, from) && !tree.strictly_dominates(a, to)) expected.emplace(const_cast<Node*>(&a), &to);
      }
    });
  }
  ASSERT_EQ(found, expected);
  for (const Node& node : graph.nodes()) {
    std::set<std::pair<Node*, Node*>> own, of_node;
    for (Node* member : tree.frontier(node))
      ASSERT_TRUE(own.emplace(const_cast<Node*>(&node), member).second) << "listed twice";
    ASSERT_FALSE(tree.strictly_dominates(node, node));
    for (const auto& pair : expected) {
      if (pair.first == &node) of_node.insert(pair);
    }
    ASSERT_EQ(own, of_node);
  }
}

TEST(Dominators, AgreeWithBoostOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Graph graph = random_graph(seed, random_options(seed, 40));
    if (seed % 3 == 0) graph.eliminate_dead_code([](const Node&) { return false; });
    ASSERT_EQ(testing::disagreement_with_boost(graph), "") << "seed " << seed;
  }
}

TEST(Dominators, ChildrenAndSubtreesOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 40));
    expect_children_agree(graph, Dominators(graph));
    expect_children_agree(graph, PostDominators(graph));
    if (HasFatalFailure()) return;
  }
}

TEST(Dominators, FrontiersOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 25));
    expect_frontiers_agree(graph, Dominators(graph), false);
    expect_frontiers_agree(graph, PostDominators(graph), true);
    if (HasFatalFailure()) return;
  }
}

TEST(Dominators, EmptyGraph) {
  const Graph graph;
  const Dominators dom(graph);
  EXPECT_TRUE(dom.roots().empty());
  EXPECT_TRUE(dom.frontiers().empty());
}

TEST(Dominators, OfAGraphThatUsesBeforeItDefinesAreRefused) {
  Graph graph;
  Node& a = graph.call_function("f", {graph.placeholder("x")}, {}, "a");
  Node& b = graph.call_function("f", {a}, {}, "b");
  b.append(a);
  EXPECT_THAT([&] { Dominators tree(graph); }, ThrowsMessage<Error>(HasSubstr("b: it uses a")));
  EXPECT_THAT([&] { PostDominators tree(graph); }, ThrowsMessage<Error>(HasSubstr("b: it uses a")));
}

TEST(Dominators, MillionNodeChain) {
  Graph graph;
  Node* value = &graph.placeholder("x");
  Node& first = *value;
  for (int i = 0; i < 1'000'000; ++i) value = &graph.call_function("aten::relu", {*value});
  graph.output(*value);
  const Dominators dom(graph);
  EXPECT_EQ(dom.depth(*value), 1'000'001u);
  EXPECT_TRUE(dom.dominates(first, *value));
  EXPECT_EQ(dom.common(*value, first), &first);
  const PostDominators post(graph);
  EXPECT_TRUE(post.dominates(*value, first));
  EXPECT_EQ(post.immediate(first), first.next());
}

TEST(Dominators, MillionNodeFanAndLadder) {
  const Graph fan = testing::fan(1'000'000);
  const Dominators dom(fan);
  EXPECT_EQ(dom.immediate(*fan.output_node()), fan.placeholders()[0]);
  EXPECT_EQ(PostDominators(fan).immediate(*fan.placeholders()[0]), fan.output_node());

  const Graph ladder = testing::ladder(300'000);
  EXPECT_GT(Dominators(ladder).depth(*ladder.output_node()), 300'000u);
  EXPECT_GT(PostDominators(ladder).depth(*ladder.placeholders()[0]), 300'000u);
}

/// Two long chains joined at every rung: every common ancestor is far away.
TEST(Dominators, ParallelChainsJoinedAtEveryRung) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node *left = &graph.call_function("aten::relu", {x}), *right = &graph.call_function("aten::neg", {x});
  for (int i = 0; i < 200'000; ++i) {
    left = &graph.call_function("aten::relu", {*left});
    right = &graph.call_function("aten::add.Tensor", {*right, *left});
  }
  graph.output(*right);
  const Dominators dom(graph);
  EXPECT_EQ(dom.immediate(*right), &x);
  EXPECT_EQ(dom.depth(*left), 200'002u);
  EXPECT_EQ(PostDominators(graph).immediate(x), right);
}

// ── Regions ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Regions, AgreeWithTheDefinitionOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 30));
    const Dominators dom(graph);
    const PostDominators post(graph);
    std::vector<Region> expected;
    for (const Node& a : graph.nodes()) {
      for (const Node& b : graph.nodes()) {
        if (&a == &b || !dom.dominates(a, b) || !post.dominates(b, a)) continue;
        expected.push_back({const_cast<Node*>(&a), const_cast<Node*>(&b)});  // the first in order is the smallest
        break;
      }
    }
    const std::vector<Region> regions = single_entry_single_exit_regions(dom, post);
    ASSERT_EQ(regions, expected) << seed;
    for (const Region& region : regions) {
      const std::vector<Node*> nodes = region_nodes(region, dom, post);
      const std::set<const Node*> inside(nodes.begin(), nodes.end());
      ASSERT_EQ(nodes.front(), region.entry);
      ASSERT_TRUE(inside.count(region.exit));
      for (const Node* node : nodes) {
        if (node != region.entry) node->for_each_input([&](Node& input) { ASSERT_TRUE(inside.count(&input)) << seed; });
        if (node == region.exit) continue;
        for (const Node& user : node->users()) ASSERT_TRUE(inside.count(&user)) << seed;
      }
    }
  }
}

TEST(FusionGroups, AreMaximalConvexAndHaveOneExit) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 40));
    const auto fusible = [](const Node& node) { return node.is(Op::call_function) && node.id() % 5 != 0; };
    const auto groups = fusion_groups(graph, fusible);
    NodeMap<int> group_of(graph, -1);
    int next = 0;
    for (const auto& group : groups) {
      ASSERT_GE(group.size(), 2u);
      for (Node* node : group) {
        ASSERT_EQ(group_of[*node], -1);
        group_of[*node] = next;
      }
      ++next;
    }
    for (const auto& group : groups) {
      const int id = group_of[*group.front()];
      for (const Node* node : group) {
        ASSERT_TRUE(fusible(*node));
        if (node == group.back()) continue;
        for (const Node& user : node->users()) ASSERT_EQ(group_of[user], id) << seed;
      }
      // Convex: no way out of the group leads back into it.
      NodeMap<bool> left(graph, false);
      for (const Node& node : graph.nodes()) {
        bool from_group = false, from_left = false;
        node.for_each_input([&](Node& input) {
          from_group |= group_of[input] == id;
          from_left |= left[input];
        });
        ASSERT_FALSE(group_of[node] == id && from_left) << seed;
        left[node] = group_of[node] != id && (from_group || from_left);
      }
    }
    // Maximal: a fusible node whose users are all in one group is in it.
    for (const Node& node : graph.nodes()) {
      if (!fusible(node) || !node.has_users()) continue;
      std::set<int> around;
      for (const Node& user : node.users()) around.insert(group_of[user]);
      if (around.size() == 1 && *around.begin() >= 0) {
        ASSERT_EQ(group_of[node], *around.begin());
      }
    }
  }
}

}  // namespace fx::dominators_test
