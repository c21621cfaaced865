// JSON and Graphviz.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include <fxgraph/text/dot.h>
#include <fxgraph/text/print.h>
#include "tests/support/random_graph.h"

namespace fx::json_dot_test {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Json, SaysEverything) {
  Graph graph;
  Node& x = graph.placeholder("x");
  x.meta().set(meta_key::kType, std::string("int"));
  Node& f = graph.call_function("aten::add.Tensor", {x, Argument::tuple({x, 1})}, {{"alpha", 2.0}});
  graph.output(f);
  EXPECT_EQ(print_json(graph), R"({"nodes": [
  {"name": "x", "op": "placeholder", "target": "x", "type": "int", "args": [], "kwargs": {}, "users": ["add"]},
  {"name": "add", "op": "call_function", "target": "aten::add.Tensor", "args": [{"node": "x"}, {"tuple": [{"node": "x"}, 1]}], "kwargs": {"alpha": 2.0}, "users": ["output"]},
  {"name": "output", "op": "output", "target": "output", "args": [{"node": "add"}], "kwargs": {}, "users": []}
]}
)");
  EXPECT_EQ(print_json(Graph()), "{\"nodes\": []}\n");
}

TEST(Json, EveryKindOfArgument) {
  Graph graph;
  const std::string bytes("\x00\xff\xc3\xa9\"\\\n", 7);
  graph.output({nullptr, true, -1, 1e-05, INFINITY, bytes, DType::int8, Device{"cuda", 0}, Layout{"strided"},
                MemoryFormat{"channels_last"}, Argument::ellipsis(), Argument::opaque("<f>"), Argument::list({1}),
                Argument::dict({"k", 1, 2, nullptr}), Argument::slice(1, nullptr), std::complex<double>(1, 2)});
  const json value = json::parse(print_json(graph))["nodes"][0]["args"][0];
  EXPECT_EQ(value,
            json::parse(R"([null, true, -1, 1e-05, {"float": "inf"}, "\u0000\ufffd\u00e9\"\\\n", {"dtype": "int8"},
      {"device": "cuda:0"}, {"layout": "strided"}, {"memory_format": "channels_last"}, {"ellipsis": true}, {"opaque": "<f>"}, [1],
      {"dict": [["k", 1], [2, null]]}, {"slice": [1, null, null]}, {"complex": [1.0, 2.0]}])"));
}

TEST(Json, RandomGraphsAreWellFormed) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Graph graph = testing::random_graph(seed, testing::random_options(seed));
    const json nodes = json::parse(print_json(graph))["nodes"];
    ASSERT_EQ(nodes.size(), graph.size());
    std::size_t i = 0;
    for (const Node& node : graph.nodes()) {
      ASSERT_EQ(nodes[i]["name"], node.name());
      ASSERT_EQ(nodes[i]["users"].size(), node.num_users());
      ASSERT_EQ(nodes[i++]["args"].size(), node.args().size());
    }
  }
}

TEST(Dot, HasARecordPerNodeAndAnEdgePerUse) {
  Graph graph;
  Node& x = graph.placeholder("x");
  x.meta().set(meta_key::kType, std::string("List[int]"));
  graph.call_function("aten::add.Tensor", {x, x});
  EXPECT_EQ(print_dot(graph), R"(digraph graph_ {
  node [shape=record, style=filled, fontname="monospace"];
  n0 [label="{x|placeholder|x|List[int]}", fillcolor="#cfe2f3"];
  n1 [label="{add|call_function|torch.ops.aten.add.Tensor}", fillcolor="#ffffff"];
  n0 -> n1;
  n0 -> n1;
}
)");
}

TEST(Dot, EscapesWhatRecordsGiveMeaning) {
  Graph graph;
  graph.call_module("a{b}|<c>\"\\ d\n\x01", {});
  EXPECT_THAT(print_dot(graph), HasSubstr(R"(|a\{b\}\|\<c\>\"\\\ d\n })"));
}

// FX: fx/test_graph_drawer.py.
TEST(Dot, HasWhatTheOptionsAskFor) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& w = graph.get_attr("w");
  Node& add = graph.call_function("aten::add.Tensor", {x, w}, {{"alpha", 2}});
  add.meta().set(meta_key::kStackTrace, std::string("File \"net.py\", line 7, in forward\n    x + w\n"));
  graph.output(add);
  Shapes shapes(graph);
  shapes[add] = TensorInfo{.sizes = {2, 3}};
  const std::string text =
      print_dot(graph, {.name = "my net",
                        .ignore_getattr = true,
                        .arguments = true,
                        .parse_stack_trace = true,
                        .shapes = &shapes,
                        .colour = [](const Node& node) { return node.is(Op::output) ? "red" : ""; }});
  EXPECT_THAT(text, HasSubstr("digraph \"my net\" {"));
  EXPECT_THAT(text, HasSubstr("args=(_,\\ _)|kwargs=(alpha=2)|float32[2,\\ 3]|"));
  EXPECT_THAT(text, HasSubstr("|net.py:7}"));
  EXPECT_THAT(text, HasSubstr("fillcolor=\"red\""));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("get_attr")));
  EXPECT_THAT(text, HasSubstr("  n0 -> n2;\n  n2 -> n3;\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("n1")));
  const std::string named = print_dot(graph, {.arguments = true, .skip_node_names_in_args = false, .shape = "box"});
  EXPECT_THAT(named, HasSubstr("add\\ncall_function\\ntorch.ops.aten.add.Tensor\\nargs=(%x, %w)\\nkwargs=(alpha=2)"));
  EXPECT_EQ(print_dot(graph, {}), print_dot(graph));
}

}  // namespace fx::json_dot_test
