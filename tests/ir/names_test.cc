// How nodes get their names. FX: test_graph_unique_names, test_graph_unique_names_manual, test_snake_case,
// test_inf_nan_kwds, test_reserved_getattr.
#include <gmock/gmock.h>

#include <set>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/naming.h>
#include "tests/support/names.h"
#include "tests/support/random.h"

namespace fx::names_test {

using ::testing::ElementsAre;
using testing::order;

std::string named(Graph& graph, std::string_view candidate) { return graph.placeholder(candidate).name(); }

TEST(Names, NumbersFollowTheLargestOfTheStem) {
  Graph graph;
  EXPECT_EQ(named(graph, "x"), "x");
  EXPECT_EQ(named(graph, "x"), "x_1");
  EXPECT_EQ(named(graph, "x"), "x_2");
  EXPECT_EQ(named(graph, "x_1"), "x_3");  // taken: the counter of x goes on
  EXPECT_EQ(named(graph, "x_7"), "x_7");  // free: kept
  EXPECT_EQ(named(graph, "x"), "x_8");
  EXPECT_EQ(named(graph, "x_5"), "x_5");
  EXPECT_EQ(named(graph, "x"), "x_9");
}

TEST(Names, ManualNamesStayUnique) {
  Graph graph;
  graph.placeholder("x");
  EXPECT_EQ(named(graph, "foo_1_1"), "foo_1_1");
  EXPECT_EQ(named(graph, "foo_1"), "foo_1");
  EXPECT_EQ(named(graph, "foo"), "foo");
  EXPECT_EQ(named(graph, "foo_1"), "foo_2");
  EXPECT_EQ(named(graph, "foo_1_1"), "foo_1_2");
}

TEST(Names, LeadingZerosAndLongNumbersBelongToTheStem) {
  Graph graph;
  EXPECT_EQ(named(graph, "x_1"), "x_1");
  EXPECT_EQ(named(graph, "x_01"), "x_01");
  EXPECT_EQ(named(graph, "x_01"), "x_01_1");
  EXPECT_EQ(named(graph, "x_0"), "x_0");
  EXPECT_EQ(named(graph, "x_12345678901234567890"), "x_12345678901234567890");
  EXPECT_EQ(named(graph, "x_12345678901234567890"), "x_12345678901234567890_1");
}

TEST(Names, TheLargestNumberLeavesRoom) {
  Graph graph;
  EXPECT_EQ(named(graph, "x"), "x");
  EXPECT_EQ(named(graph, "x_999999999"), "x_999999999");
  EXPECT_EQ(named(graph, "x"), "x_1");  // not x_1000000000, which would be a stem of its own
  EXPECT_EQ(named(graph, "x_1000000000"), "x_1000000000");
  EXPECT_EQ(named(graph, "x"), "x_2");
  EXPECT_EQ(graph.find("x_1000000000")->name(), "x_1000000000");
}

TEST(Names, TheFirstGapIsBehindAllNumbersInARow) {
  for (const bool downward : {true, false}) {
    Graph graph;
    EXPECT_EQ(named(graph, "x_999999999"), "x_999999999");
    EXPECT_EQ(named(graph, downward ? "x_2" : "x_1"), downward ? "x_2" : "x_1");
    EXPECT_EQ(named(graph, downward ? "x_1" : "x_2"), downward ? "x_1" : "x_2");
    EXPECT_EQ(named(graph, "x_1"), "x_3");
    EXPECT_EQ(named(graph, "x_1"), "x_4");
  }
}

TEST(Names, ReservedWordsGetANumber) {
  Graph graph;
  for (const char* word :
       {"len", "getattr", "inf", "nan", "None", "True", "torch", "device", "class", "Ellipsis", "input"}) {
    EXPECT_EQ(named(graph, word), std::string(word) + "_1");
  }
  EXPECT_EQ(named(graph, "len"), "len_2");
  EXPECT_EQ(graph.call_function("builtins.getattr", {"a", "b"}).name(), "getattr_2");
}

TEST(Names, BecomeIdentifiers) {
  Graph graph;
  EXPECT_EQ(named(graph, "a.b c"), "a_b_c");
  EXPECT_EQ(named(graph, "3abc"), "_3abc");
  EXPECT_EQ(named(graph, "*args"), "args");
  EXPECT_EQ(named(graph, "**kwargs"), "kwargs");
  EXPECT_EQ(named(graph, "ünï"), "_n_");
  EXPECT_EQ(named(graph, "??"), "_");
  EXPECT_EQ(named(graph, "LayerNorm"), "LayerNorm");  // what the user gives is not snake-cased
}

TEST(Names, ComeFromTheTarget) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.call_module("layers.0.LayerNorm", {x});
  graph.call_module("ALL_CAPS", {x});
  graph.call_module("pascalCase", {x});
  graph.call_function("torch.nn.functional.log_softmax", {x});
  graph.call_function("aten::add.Tensor", {x, x});
  graph.call_function("torch.ops.aten.add.Tensor", {x, x});
  graph.call_function("operator.add", {x, x});
  graph.call_method("__getitem__", {x, 0});
  graph.get_attr("block.weight");
  graph.call_function("aten::conv2d", {x});
  graph.call_function("aten::conv2d", {x});
  EXPECT_THAT(order(graph), ElementsAre("x", "layers_0_layer_norm", "all_caps", "pascal_case", "log_softmax", "add",
                                        "add_1", "add_2", "getitem", "block_weight", "conv2d", "conv2d_1"));
  EXPECT_EQ(graph.find("layers_0_layer_norm")->target(), "layers.0.LayerNorm");
}

TEST(Names, OfErasedNodesAreNotGivenOutAgain) {
  Graph graph;
  graph.erase_node(graph.placeholder("x"));
  EXPECT_EQ(named(graph, "x"), "x_1");
}

TEST(Names, StayUniqueAfterCopies) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("aten::relu", {x});
  graph.output(relu);
  Graph copy = graph.clone();
  EXPECT_EQ(copy.call_function("aten::relu", {*copy.find("relu")}).name(), "relu_1");
  EXPECT_EQ(copy.node_copy(relu, [&](Node&) { return Argument(copy.find("x")); }).name(), "relu_2");
  copy.lint();
}

TEST(Names, RenameAsksForAFreshName) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  y.rename("x");
  EXPECT_EQ(y.name(), "x_1");
  y.rename("x_1");
  EXPECT_EQ(y.name(), "x_1") << "a node may keep its own name";
  x.rename("len");
  EXPECT_EQ(x.name(), "len_1");
  y.rename("a-b");
  EXPECT_EQ(y.name(), "a_b");
  EXPECT_EQ(graph.find("y"), nullptr);
  EXPECT_EQ(graph.find("a_b"), &y);
}

// Naive: a set of texts; a taken candidate gets one more than the largest number of its stem.
TEST(Names, AgreeWithASetOfStrings) {
  testing::Random random(7);
  Graph graph;
  std::set<std::string> taken;
  std::map<std::string, std::uint32_t> largest;
  const char* stems[] = {"a", "b", "a_b", "x1", "len"};
  for (int i = 0; i < 5000; ++i) {
    std::string stem = random.pick(stems);
    std::string candidate = stem;
    std::uint32_t number = static_cast<std::uint32_t>(random.below(400));
    const bool numbered = random.chance(60);
    if (numbered) candidate += "_" + std::to_string(number);
    std::string expected = candidate;
    if (taken.contains(candidate) || candidate == "len") {
      number = largest[stem] + 1;
      expected = stem + "_" + std::to_string(number);
    } else if (!numbered) {
      number = 0;
    }
    taken.insert(expected);
    largest[stem] = std::max(largest[stem], number);
    ASSERT_EQ(named(graph, candidate), expected) << "step " << i;
  }
}

// Whatever was there before, the names are those of a graph that was made in this order.
TEST(Names, InOrderAreThoseOfANewGraph) {
  for (const bool keeps : {false, true}) {
    Graph graph, expected;
    Node& x = graph.placeholder("x");
    graph.erase_node(graph.call_function("aten::relu", {x}));
    Node& named = graph.call_function("aten::relu", {x}, {}, "relu_7");
    graph.call_function("aten::relu", {named});
    graph.call_function("aten::sin", {named});
    Node& same = expected.placeholder("x");
    Node& first = expected.call_function("aten::relu", {same}, {}, keeps ? "relu_7" : "");
    expected.call_function("aten::relu", {first}, {}, keeps ? "relu" : "");
    expected.call_function("aten::sin", {first});
    name_in_order(graph, [&](const Node& node) { return node.is(Op::placeholder) || (keeps && &node == &named); });
    EXPECT_EQ(testing::order(graph), testing::order(expected)) << keeps;
    EXPECT_EQ(graph.call_function("aten::sin", {x}).name(), "sin_1");
    EXPECT_NE(graph.placeholder("x").name(), "x") << "a name that was kept is taken";
    EXPECT_NE(graph.call_function("aten::relu", {x}, {}, keeps ? "relu_7" : "relu").name(), keeps ? "relu_7" : "relu");
  }
}

}  // namespace fx::names_test
