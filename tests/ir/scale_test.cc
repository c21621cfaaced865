// Nothing is quadratic and nothing recurses: what would take hours or a gigabyte of stack must take a moment.
#include <gtest/gtest.h>

#include <fxgraph/ir/graph.h>
#include "tests/support/random.h"
#include "tests/support/random_graph.h"

namespace fx::scale_test {

constexpr int kMany = 100'000;
constexpr int kMost = 1'000'000;  // so many that each step may not look at all of them, however seldom it does

void expect_ordered(const Graph& graph) {
  const Node* previous = nullptr;
  for (const Node& node : graph.nodes()) {
    ASSERT_TRUE(!previous || previous->is_before(node));
    previous = &node;
  }
}

TEST(Scale, InsertionsBeforeOneNode) {
  Graph graph;
  graph.placeholder("x");
  Node& anchor = graph.get_attr("anchor");
  graph.get_attr("last");
  auto scope = graph.inserting_before(anchor);
  for (int i = 0; i < kMost; ++i) graph.get_attr("w");
  expect_ordered(graph);
}

TEST(Scale, InsertionsAfterOneNodeEachTimeAnew) {
  Graph graph;
  Node& anchor = graph.placeholder("x");
  graph.get_attr("last");
  for (int i = 0; i < kMost; ++i) {
    auto scope = graph.inserting_after(anchor);
    graph.get_attr("w");
  }
  EXPECT_EQ(anchor.next()->name(), "w_" + std::to_string(kMost - 1));
  expect_ordered(graph);
}

TEST(Scale, InsertionsAtTheStart) {
  Graph graph;
  graph.get_attr("last");
  for (int i = 0; i < kMany; ++i) {
    auto scope = graph.inserting_before();
    graph.placeholder("x");
  }
  expect_ordered(graph);
}

TEST(Scale, MovesBackAndForth) {
  Graph graph;
  std::vector<Node*> nodes;
  for (int i = 0; i < 1000; ++i) nodes.push_back(&graph.get_attr("w"));
  testing::Random random(3);
  for (int i = 0; i < kMany; ++i) {
    Node& node = *random.pick(nodes);
    random.chance(50) ? nodes[500]->append(node) : nodes[500]->prepend(node);
  }
  expect_ordered(graph);
}

TEST(Scale, MillionUsers) {
  Graph graph = testing::fan(1'000'000);
  Node& x = *graph.placeholders()[0];
  EXPECT_EQ(x.num_users(), 1'000'000u);
  Node& y = [&]() -> Node& {
    auto scope = graph.inserting_before();
    return graph.placeholder("y");
  }();
  EXPECT_EQ(x.replace_all_uses_with(y).size(), 1'000'000u);
  EXPECT_FALSE(x.has_users());
  EXPECT_EQ(y.num_users(), 1'000'000u);
  // Back again through the slow path, one user at a time, while the other list is long.
  EXPECT_EQ(y.replace_all_uses_with(x, [](const Node&) { return true; }).size(), 1'000'000u);
  EXPECT_EQ(x.num_users(), 1'000'000u);
  graph.lint();
  EXPECT_EQ(graph.clone().size(), graph.size());
  graph.erase_node(*graph.output_node());
  EXPECT_EQ(graph.eliminate_dead_code([](const Node&) { return false; }), 1'000'000u);
  EXPECT_FALSE(x.has_users());
}

TEST(Scale, MillionNodes) {
  Graph graph = testing::chain(333'333);
  graph.lint();
  Graph clone = graph.clone();
  clone.lint();
  EXPECT_EQ(clone.find_nodes(Op::call_function, "aten::relu").size(), 333'333u);
  clone.erase_node(*clone.output_node());
  EXPECT_EQ(clone.eliminate_dead_code([](const Node&) { return false; }), 999'999u);
  EXPECT_EQ(clone.size(), 2u);
  EXPECT_LE(graph.memory_bytes() / graph.size(), 160u);
}

// Arguments that are set again and again must reuse their storage.
TEST(Scale, StorageIsReused) {
  Graph graph;
  std::vector<Argument> inputs;
  for (int i = 0; i < 1000; ++i) inputs.emplace_back(graph.placeholder("x"));
  Node& cat = graph.call_function("cat", {Argument::list(inputs)});
  for (int i = 0; i < 10; ++i) cat.set_args({Argument::list(inputs), i});
  const std::size_t bytes = graph.memory_bytes();
  for (int i = 0; i < 1000; ++i) cat.set_args({Argument::list(inputs), i});
  EXPECT_EQ(graph.memory_bytes(), bytes);
}

// One stem per name and numbers that grow: no table may be as long as the largest number for every stem.
TEST(Scale, NumbersOfManyStems) {
  Graph graph;
  for (int i = 0; i < kMany; ++i) graph.placeholder("stem" + std::to_string(i) + "x_" + std::to_string(4 * i));
  graph.lint();
  EXPECT_EQ(graph.placeholder("stem100x").name(), "stem100x");
}

}  // namespace fx::scale_test
