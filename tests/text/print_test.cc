// The exact text of every opcode and argument. FX: test_pretty_print_node, test_pretty_print_graph,
// test_pretty_print_targets.
#include <fxgraph/text/print.h>

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include <fxgraph/text/parse.h>

namespace fx::print_test {

TEST(Print, EveryOpcode) {
  Graph graph;
  Node& x = graph.placeholder("x");
  x.meta().set(meta_key::kType, std::string("torch.Tensor"));
  graph.placeholder("mode", Argument("floor"));
  graph.placeholder("*rest");
  Node& weight = graph.get_attr("linear.weight");
  Node& linear = graph.call_module("linear.0", {x});
  Node& add = graph.call_function("aten::add.Tensor", {linear, weight}, {{"alpha", 2}});
  add.meta().set(meta_key::kType, std::string("f32[1, 3]"));
  Node& relu = graph.call_function("aten::relu", {add});
  Node& clamp = graph.call_method("clamp", {relu}, {{"min", 0.0}, {"max", 1.0}});
  graph.output(Argument::tuple({clamp, Argument::dict({"w", weight}), "done"}));
  EXPECT_EQ(print_graph(graph), R"(graph():
    %x : torch.Tensor [num_users=1] = placeholder[target=x]
    %mode : [num_users=0] = placeholder[target=mode](default='floor')
    %rest : [num_users=0] = placeholder[target=*rest]
    %linear_weight : [num_users=2] = get_attr[target=linear.weight]
    %linear_0 : [num_users=1] = call_module[target=linear.0](args = (%x,), kwargs = {})
    %add : f32[1, 3] [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%linear_0, %linear_weight), kwargs = {alpha: 2})
    %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%add,), kwargs = {})
    %clamp : [num_users=1] = call_method[target=clamp](args = (%relu,), kwargs = {min: 0.0, max: 1.0})
    return (clamp, {'w': linear_weight}, 'done')
)");
  EXPECT_EQ(format_node(x), "%x : torch.Tensor [num_users=1] = placeholder[target=x]");
  std::ostringstream out;
  out << graph;
  EXPECT_EQ(out.str(), print_graph(graph));
}

TEST(Print, EmptyGraph) { EXPECT_EQ(print_graph(Graph()), "graph():\n"); }

std::string printed(const Argument& value) {
  Graph graph;
  const std::string line = format_node(graph.call_function("f", {value, 0}));
  const std::size_t start = line.find("(args = (") + 9;
  return line.substr(start, line.rfind(", 0), kwargs = {})") - start);
}

TEST(Print, EveryKindOfArgument) {
  EXPECT_EQ(printed(nullptr), "None");
  EXPECT_EQ(printed(true), "True");
  EXPECT_EQ(printed(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(printed(1e-05), "1e-05");
  EXPECT_EQ(printed(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(printed("it's"), "\"it's\"");
  EXPECT_EQ(printed(DType::bfloat16), "torch.bfloat16");
  EXPECT_EQ(printed(Device{"cuda", 0}), "device(type='cuda', index=0)");
  EXPECT_EQ(printed(Layout{"strided"}), "torch.strided");
  EXPECT_EQ(printed(MemoryFormat{"channels_last"}), "torch.channels_last");
  EXPECT_EQ(printed(Argument::ellipsis()), "Ellipsis");
  EXPECT_EQ(printed(std::complex<double>(1.5, -2)), "complex(1.5, -2.0)");
  EXPECT_EQ(printed(Argument::list({})), "[]");
  EXPECT_EQ(printed(Argument::tuple({Argument::tuple({1})})), "((1,),)");
  EXPECT_EQ(printed(Argument::dict({"k", 1, 2, {3}, nullptr, "v"})), "{'k': 1, 2: [3], None: 'v'}");
  EXPECT_EQ(printed(Argument::slice(nullptr, 2)), "slice(None, 2, None)");
}

TEST(Print, ObjectsVerbatimWhereTheyReadBack) {
  for (const char* text : {"<function f at 0x7f>", "range(0, 3)", "my.Point(x=1, y=[2, (3)], z='a)')", "b'bytes'",
                           "18446744073709551616", "torch.per_tensor_affine"}) {
    EXPECT_EQ(printed(Argument::opaque(text)), text);
  }
  EXPECT_EQ(printed(Argument::opaque("plain")), "opaque('plain')");
  EXPECT_EQ(printed(Argument::opaque("f(x) + 1")), "opaque('f(x) + 1')");
  EXPECT_EQ(printed(Argument::opaque("slice(1)")), "opaque('slice(1)')");
  EXPECT_EQ(printed(Argument::opaque("f(\n)")), "opaque('f(\\n)')");
  EXPECT_EQ(printed(Argument::opaque("")), "opaque('')");
}

TEST(Print, NodesInSlicesArePlain) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_EQ(format_node(graph.call_function("operator.getitem", {x, Argument::tuple({Argument::slice(x, nullptr)})})),
            "%getitem : [num_users=0] = call_function[target=operator.getitem](args = (%x, (slice(x, None, None),)), "
            "kwargs = {})");
}

TEST(Print, QuotesWhatWouldNotReadBack) {
  Graph graph;
  graph.call_module("a]b c", {});
  graph.call_function("a.b::c", {});
  graph.call_function("", {}, {{"no name", 1}});
  graph.get_attr("w").meta().set(meta_key::kType, std::string("a = [num_users=1]"));
  EXPECT_EQ(print_graph(graph), R"(graph():
    %a_b_c : [num_users=0] = call_module[target='a]b c'](args = (), kwargs = {})
    %c : [num_users=0] = call_function[target='a.b::c'](args = (), kwargs = {})
    %_unnamed : [num_users=0] = call_function[target=''](args = (), kwargs = {'no name': 1})
    %w : 'a = [num_users=1]' [num_users=0] = get_attr[target=w]
)");
}

TEST(Print, KeepsWhatLintRefuses) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& weight = graph.create_node(Op::get_attr, "w", {x});
  Node& output = graph.output(x);
  output.set_args({x, weight});
  EXPECT_EQ(format_node(weight), "%w : [num_users=1] = get_attr[target=w](args = (%x,), kwargs = {})");
  EXPECT_EQ(format_node(output), "%output : [num_users=0] = output[target=output](args = (%x, %w), kwargs = {})");
  EXPECT_EQ(print_graph(parse_graph(print_graph(graph))), print_graph(graph));
}

}  // namespace fx::print_test
