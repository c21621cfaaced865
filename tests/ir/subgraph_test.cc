#include <fxgraph/ir/subgraph.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"

namespace fx::subgraph_test {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

/// x -> a, b; c = a + weight; d = c * b; out d, a.
struct Sample {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& weight = graph.get_attr("weight");
  Node& a = graph.call_function("aten::relu", {x}, {}, "a");
  Node& b = graph.call_function("aten::neg", {x}, {}, "b");
  Node& c = graph.call_function("aten::add.Tensor", {a, weight}, {{"alpha", 2}}, "c");
  Node& d = graph.call_function("aten::mul.Tensor", {c, b}, {}, "d");
  Node& out = graph.output(Argument::tuple({d, a}));
};

TEST(ExtractSubgraph, MakesPlaceholdersAndReturnsWhatIsUsedOutside) {
  Sample g;
  Node* piece[] = {&g.d, &g.c};
  const Subgraph sub = extract_subgraph(g.graph, piece);
  sub.graph.lint();
  EXPECT_THAT(sub.inputs, ElementsAre(&g.a, &g.b));
  EXPECT_THAT(sub.outputs, ElementsAre(&g.d));
  std::vector<std::string> names;
  for (const Node& node : sub.graph.nodes()) names.push_back(node.name());
  EXPECT_THAT(names, ElementsAre("a", "b", "weight", "c", "d", "output"));
  EXPECT_EQ(*sub.copies[g.c]->kwarg("alpha"), Argument(2));
  EXPECT_EQ(sub.copies[g.d]->arg(0).node_or_null(), sub.copies[g.c]);
  EXPECT_EQ(sub.graph.output_node()->arg(0).node_or_null(), sub.copies[g.d]);
}

TEST(ExtractSubgraph, CanTakeAttributesAsInputs) {
  Sample g;
  Node* piece[] = {&g.c};
  const Subgraph sub = extract_subgraph(g.graph, piece, {.copy_attributes = false});
  EXPECT_THAT(sub.inputs, ElementsAre(&g.weight, &g.a));
  EXPECT_EQ(sub.graph.count(Op::get_attr, "weight"), 0u);
}

TEST(ExtractSubgraph, ReturnsSeveralValuesAsTuple) {
  Sample g;
  Node* piece[] = {&g.a, &g.c};
  const Subgraph sub = extract_subgraph(g.graph, piece);
  EXPECT_THAT(sub.outputs, ElementsAre(&g.a, &g.c));
  EXPECT_TRUE(sub.graph.output_node()->arg(0).is_tuple());
}

TEST(ExtractSubgraph, RefusesWhatIsNotConvex) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x}, {}, "a");
  Node& b = graph.call_function("aten::neg", {a}, {}, "b");
  Node& c = graph.call_function("aten::add.Tensor", {a, b}, {}, "c");
  graph.output(c);
  Node* piece[] = {&a, &c};
  const auto path = find_path_outside(graph, piece);
  ASSERT_TRUE(path);
  EXPECT_THAT(*path, ElementsAre(&a, &b, &c));
  try {
    extract_subgraph(graph, piece);
    FAIL() << "should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("a -> b -> c"));
  }
}

TEST(ExtractSubgraph, RefusesInputsOutputsDoublesAndStrangers) {
  Sample g, other;
  Node& erased = g.graph.call_function("aten::relu", {g.x});
  g.graph.erase_node(erased);
  const auto refusal = [&](std::vector<Node*> piece) { return error_of([&] { extract_subgraph(g.graph, piece); }); };
  for (Node* bad : {&g.x, &g.out})
    EXPECT_THAT(refusal({bad}), HasSubstr("a piece gets inputs and an output of its own"));
  for (Node* bad : {&other.a, &erased}) EXPECT_THAT(refusal({bad}), HasSubstr("it is not in this graph"));
  EXPECT_THAT(refusal({&g.a, &g.a}), HasSubstr("twice"));
  EXPECT_THAT(refusal({&g.a, nullptr}), HasSubstr("a null node"));
}

TEST(ExtractSubgraph, ConvexityAgreesWithBruteForce) {
  int convex = 0, not_convex = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Graph graph = testing::random_graph(seed, testing::random_options(seed, 20));
    testing::Random random(seed);
    std::vector<Node*> piece;
    std::set<const Node*> inside;
    for (const Node& node : graph.nodes()) {
      if (node.is(Op::placeholder) || node.is(Op::output) || !random.chance(30)) continue;
      piece.push_back(const_cast<Node*>(&node));
      inside.insert(&node);
    }
    NodeMap<bool> left(graph, false);
    bool comes_back = false;
    for (const Node& node : graph.nodes()) {
      bool reached = false;
      node.for_each_input([&](Node& input) {
        if (inside.count(&node)) comes_back |= left[input];
        reached |= left[input] || inside.count(&input);
      });
      left[node] = reached && !inside.count(&node);
    }
    ASSERT_EQ(find_path_outside(graph, piece).has_value(), comes_back) << seed;
    ++(comes_back ? not_convex : convex);
    if (comes_back || piece.empty()) continue;
    const Subgraph sub = extract_subgraph(graph, piece);
    ASSERT_TRUE(sub.graph.check().empty()) << seed;
  }
  EXPECT_GT(convex, 100);
  EXPECT_GT(not_convex, 100);
}

}  // namespace fx::subgraph_test
