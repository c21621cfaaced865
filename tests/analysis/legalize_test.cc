// Orders put right, and calls counted. FX: test_legalize_slice, passes/tools_common.
#include <fxgraph/analysis/legalize.h>

#include <gmock/gmock.h>

#include <algorithm>

#include <fxgraph/analysis/schedule.h>
#include <fxgraph/text/operator_counts.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/names.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"

namespace fx::legalize_test {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::order;

TEST(Legalize, test_legalize_slice) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& size = graph.call_function("aten::size.int", {x, 0}, {}, "size");
  Node& half = graph.call_function("operator.floordiv", {size, 2}, {}, "half");
  Node& slice = graph.call_function("operator.getitem", {x, Argument::slice(nullptr, half)}, {}, "part");
  graph.output(slice);
  size.prepend(slice);  // before what its slice is made of
  EXPECT_FALSE(graph.check().empty());
  EXPECT_GT(legalize_graph(graph), 0u);
  EXPECT_THAT(order(graph), ElementsAre("x", "size", "half", "part", "output"));
  EXPECT_EQ(legalize_graph(graph), 0u);
}

TEST(Legalize, MovesNoMoreThanItMust) {
  Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = call_function[target=aten::neg](args = (%x,), kwargs = {})
    %b = call_function[target=aten::cos](args = (%x,), kwargs = {})
    %c = call_function[target=aten::sin](args = (%x,), kwargs = {})
    %d = call_function[target=aten::abs](args = (%c,), kwargs = {})
    return (a, b, d))");
  graph.find("a")->prepend(*graph.find("d"));
  legalize_graph(graph);
  EXPECT_THAT(order(graph), ElementsAre("x", "a", "b", "c", "d", "output"));
  graph.find("x")->prepend(*graph.output_node());
  graph.output_node()->append(*graph.find("c"));
  legalize_graph(graph);
  EXPECT_NO_THROW(graph.lint());
}

TEST(Legalize, NamesTheNodesOfACycle) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::neg", {x}, {}, "a");
  Node& b = graph.call_function("aten::neg", {a}, {}, "b");
  Node& c = graph.call_function("aten::neg", {b}, {}, "c");
  a.update_arg(0, c);
  const std::string before = testing::table(graph);
  const std::string error = error_of([&] { legalize_graph(graph); });
  EXPECT_THAT(error, HasSubstr("no order will do: %a, which needs %c, which needs %b, which needs %a"));
  EXPECT_EQ(testing::table(graph), before);
}

// FX's own moves the read across the write, and the result is another.
TEST(Legalize, ReadsDoNotPassWrites) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.call_function("aten::clone", {x}, {}, "y");
  Node& read = graph.call_function("aten::cos", {y}, {}, "read");
  Node& write = graph.call_function("aten::add_.Tensor", {y, x}, {}, "write");
  Node& late = graph.call_function("aten::sin", {x}, {}, "late");
  graph.output(Argument::tuple({read, write, late}));
  read.insert_arg(1, late);  // so it would have to come behind the write
  const std::string before = testing::table(graph);
  EXPECT_THAT(error_of([&] { legalize_graph(graph); }),
              HasSubstr("legalize_graph: %read would pass %write, which writes what it reads"));
  EXPECT_EQ(testing::table(graph), before);
}

// Nodes of legal graphs are put anywhere: the result is legal, or refused with the graph as it was.
TEST(Legalize, RandomGraphsBecomeLegalAndComputeInTheSameOrder) {
  std::size_t legal = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Graph graph = testing::random_graph(seed, testing::random_options(seed));
    if (!graph.check().empty()) continue;
    testing::Random random(seed + 7);
    std::vector<Node*> nodes;
    for (Node& node : graph.nodes()) nodes.push_back(&node);
    for (int i = 0; i < 4 && !nodes.empty(); ++i) {
      Node *a = nodes[random.below(nodes.size())], *b = nodes[random.below(nodes.size())];
      if (a != b) a->prepend(*b);
    }
    const std::string before = testing::table(graph);
    try {
      legalize_graph(graph);
      EXPECT_TRUE(graph.check().empty()) << seed;
      EXPECT_EQ(legalize_graph(graph), 0u);
      ++legal;
    } catch (const Error&) {
      EXPECT_EQ(testing::table(graph), before) << seed;
      ++refused;
    }
  }
  EXPECT_GT(legal, 100u);
  RecordProperty("refused", static_cast<int>(refused));
}

TEST(OperatorCounts, test_get_node_target) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& conv = graph.call_module("layers.0", {x}, {}, "conv");
  Node& relu = graph.call_function("aten::relu", {conv}, {}, "relu");
  Node& add = graph.call_function("operator.add", {relu, relu}, {}, "add");
  Node& view = graph.call_method("view", {add, -1}, {}, "view");
  Node& again = graph.call_module("layers.1", {view}, {}, "again");
  graph.output(again);
  const ModuleInfo types{.type = [](std::string_view path) { return std::string(path == "layers.0" ? "Conv2d" : ""); }};
  EXPECT_EQ(get_node_target(conv, types), "Conv2d");
  EXPECT_EQ(get_node_target(again, types), "layers.1");
  EXPECT_EQ(get_node_target(conv), "layers.0");
  EXPECT_EQ(get_node_target(relu), "torch.ops.aten.relu.default");
  EXPECT_EQ(get_node_target(add), "operator.add");
  EXPECT_EQ(get_node_target(view), "view");
  EXPECT_THAT(error_of([&] { get_node_target(x); }), HasSubstr("%x calls nothing: it is a placeholder"));
}

TEST(OperatorCounts, TheMostFrequentFirst) {
  Graph graph;
  Node& x = graph.placeholder("x");
  for (int i = 0; i < 3; ++i) graph.call_function("aten::relu", {x});
  graph.call_module("a", {x});
  graph.call_module("b", {x});
  graph.call_method("relu", {x});
  const std::vector<OperatorCount> counts = count_operators(graph, {.type = [](std::string_view) { return "Linear"; }});
  EXPECT_THAT(counts,
              ElementsAre(OperatorCount{"torch.ops.aten.relu.default", Op::call_function, 3},
                          OperatorCount{"Linear", Op::call_module, 2}, OperatorCount{"relu", Op::call_method, 1}));
  EXPECT_EQ(operator_table(graph),
            "       3  torch.ops.aten.relu.default\n       1  a\n       1  b\n       1  relu\n"
            "       6  calls\n");
}

}  // namespace fx::legalize_test
