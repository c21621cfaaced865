// node_copy, graph_copy, clone. FX: test_inline_graph, test_copy_no_remap, test_deepcopy_graphmodule,
// test_module_deepcopy_edit_nodes, test_deepcopy_recursion_depth.
#include <gmock/gmock.h>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include "tests/support/names.h"
#include "tests/support/random_graph.h"

namespace fx::copy_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::order;
using testing::table;
using ::testing::ThrowsMessage;

TEST(Copy, InlinesOneGraphIntoAnother) {
  Graph inner;
  Node& a = inner.placeholder("a");
  Node& b = inner.placeholder("b");
  Node& sum = inner.call_function("aten::add.Tensor", {a, b});
  sum.meta().set("note", 5);
  inner.output({sum, a, 1});

  Graph outer;
  Node& x = outer.placeholder("x");
  Node& add = outer.call_function("aten::add.Tensor", {x, x});
  NodeMap<Argument> values(inner);
  values[a] = x;
  values[b] = 2.0;
  const std::optional<Argument> result = outer.graph_copy(inner, values);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(to_string(*result), "[%add_1, %x, 1]");
  EXPECT_THAT(order(outer), ElementsAre("x", "add", "add_1"));
  EXPECT_EQ(outer.find("add_1")->arg(1), Argument(2.0));
  EXPECT_EQ(*outer.find("add_1")->find_meta()->get<int>("note"), 5);
  EXPECT_EQ(values[sum], Argument(outer.find("add_1")));
  EXPECT_EQ(outer.output_node(), nullptr) << "no output was copied";
  outer.output(*result);
  outer.lint();
  inner.lint();
  EXPECT_EQ(add.num_users(), 0u);
}

TEST(Copy, WithoutAnOutputReturnsNothing) {
  Graph from, to;
  from.placeholder("x");
  NodeMap<Argument> values(from);
  EXPECT_EQ(to.graph_copy(from, values), std::nullopt);
  EXPECT_THAT(order(to), ElementsAre("x"));
}

TEST(Copy, OfAGraphIntoItselfIsRefused) {
  Graph graph;
  graph.placeholder("x");
  NodeMap<Argument> values(graph);
  EXPECT_THROW(graph.graph_copy(graph, values), Error);
  EXPECT_EQ(graph.size(), 1u);
}

TEST(Copy, WithoutAMapIsRefusedAtOnce) {
  Graph from, to;
  Node& x = from.placeholder("x");
  Node& relu = from.call_function("aten::relu", {x});
  EXPECT_THROW(to.node_copy(relu, [](Node& node) { return Argument(node); }), Error);
  EXPECT_TRUE(to.empty());
}

TEST(Copy, OfAnErasedNodeOrWithoutAFunctionIsRefused) {
  Graph from, to;
  Node& x = from.placeholder("x");
  Node& relu = from.call_function("aten::relu", {x});
  EXPECT_THAT([&] { to.node_copy(relu, {}); }, ThrowsMessage<Error>(HasSubstr("cannot copy relu")));
  from.erase_node(relu);
  EXPECT_THAT([&] { to.node_copy(relu, [](Node&) { return Argument(1); }); },
              ThrowsMessage<Error>(HasSubstr("cannot copy an erased node")));
  EXPECT_TRUE(to.empty());
}

TEST(Copy, OfANodeInItsOwnGraph) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& f = graph.call_function("f", {x, {x, 1}}, {{"k", x}}, "f");
  f.meta().set("note", std::string("kept"));
  Node& copy = graph.node_copy(f, [](Node& node) { return Argument(node); });
  EXPECT_EQ(copy.name(), "f_1");
  EXPECT_EQ(copy.args().to_vector(), f.args().to_vector());
  EXPECT_EQ(copy.kwargs().to_vector(), f.kwargs().to_vector());
  copy.meta().set("note", std::string("changed"));
  EXPECT_EQ(*f.find_meta()->get<std::string>("note"), "kept");
  EXPECT_EQ(x.num_users(), 2u);
}

TEST(Clone, IsEqualAndIndependent) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Graph graph = testing::random_graph(seed, testing::random_options(seed));
    NodeMap<Node*> map;
    Graph clone = graph.clone(&map);
    clone.lint();
    const std::string before = table(graph);
    ASSERT_EQ(table(clone), before);
    for (Node& node : graph.nodes()) {
      ASSERT_EQ(map[node]->name(), node.name());
      ASSERT_EQ(map[node]->num_users(), node.num_users());
      ASSERT_EQ(clone.count(node.op(), node.target()), graph.count(node.op(), node.target()));
    }
    for (Node& node : clone.nodes()) {
      if (node.is(Op::call_function)) node.set_target("changed");
    }
    clone.eliminate_dead_code([](const Node&) { return false; });
    ASSERT_EQ(table(graph), before);
    graph.lint();
  }
}

TEST(Clone, KeepsNotesOutputAndNamesToCome) {
  Graph graph;
  Node& x = graph.placeholder("x");
  x.meta().set(meta_key::kType, std::string("int"));
  graph.erase_node(graph.placeholder("gone"));
  graph.output(x);
  Graph clone = graph.clone();
  EXPECT_EQ(*clone.find("x")->find_meta()->get<std::string>(meta_key::kType), "int");
  EXPECT_EQ(clone.id_bound(), 2u) << "ids are dense again";
  EXPECT_EQ(clone.output_node(), clone.find("output"));
  EXPECT_EQ(clone.placeholder("gone").name(), "gone_1") << "names of erased nodes stay used";
  EXPECT_EQ(clone.get_attr("late").next(), clone.output_node());
}

TEST(Clone, CopiesGraphsThatDoNotLint) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("f", {x}, {}, "a");
  Node& b = graph.call_function("f", {a}, {}, "b");
  a.prepend(b);
  Graph clone = graph.clone();
  EXPECT_EQ(table(clone), table(graph));
  EXPECT_EQ(clone.check().size(), 1u);
  EXPECT_EQ(clone.find("a")->num_users(), 1u);
}

TEST(Clone, OfALongChainDoesNotRecurse) {
  Graph graph = testing::chain(100'000);
  Graph clone = graph.clone();
  EXPECT_EQ(clone.size(), graph.size());
  clone.lint();
}

}  // namespace fx::copy_test
