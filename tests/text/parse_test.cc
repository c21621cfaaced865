// What reading accepts, and what it makes of it.
#include <fxgraph/text/parse.h>

#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <limits>

#include <fxgraph/text/print.h>
#include "tests/support/names.h"

namespace fx::parse_test {

using ::testing::ElementsAre;
using testing::order;

// The first argument of a call as this text.
Argument value(const std::string& text) {
  Graph graph = parse_graph("graph():\n  %x : = placeholder[target=x]\n  %y : = call_function[target=f](args = (" +
                            text + ", 0), kwargs = {})\n");
  const ArgumentSpan args = graph.find("y")->args();
  EXPECT_EQ(args.size(), 2u) << text;
  return args[0];
}

TEST(Parse, Literals) {
  EXPECT_EQ(value("None"), Argument());
  EXPECT_EQ(value("True"), Argument(true));
  EXPECT_EQ(value("False"), Argument(false));
  EXPECT_EQ(value("0"), Argument(0));
  EXPECT_EQ(value("-7"), Argument(-7));
  EXPECT_EQ(value("-9223372036854775808"), Argument(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(value("9223372036854775808"), Argument::opaque("9223372036854775808"));
  EXPECT_EQ(value("1.0"), Argument(1.0));
  EXPECT_EQ(value("1."), Argument(1.0));
  EXPECT_EQ(value(".5"), Argument(0.5));
  EXPECT_EQ(value("+2.5"), Argument(2.5));
  EXPECT_EQ(value("-0.0"), Argument(-0.0));
  EXPECT_EQ(value("1e-05"), Argument(1e-05));
  EXPECT_EQ(value("1e999"), Argument(INFINITY));
  EXPECT_EQ(value("inf"), Argument(INFINITY));
  EXPECT_EQ(value("-inf"), Argument(-INFINITY));
  EXPECT_EQ(value("nan"), Argument(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(value("Ellipsis"), Argument::ellipsis());
  EXPECT_EQ(value("..."), Argument::ellipsis());
}

TEST(Parse, ComplexNumbers) {
  using C = std::complex<double>;
  EXPECT_EQ(value("1j"), Argument(C(0, 1)));
  EXPECT_EQ(value("-2.5j"), Argument(C(0, -2.5)));
  EXPECT_EQ(value("(1.5-2j)"), Argument(C(1.5, -2)));
  EXPECT_EQ(value("(-1e-05+1e+20j)"), Argument(C(-1e-05, 1e20)));
  EXPECT_EQ(value("(-0-infj)"), Argument(C(-0.0, -INFINITY)));
  EXPECT_EQ(value("complex(1.5, -2.0)"), Argument(C(1.5, -2)));
  EXPECT_EQ(value("complex(1)"), Argument(C(1, 0)));
}

TEST(Parse, TensorOptions) {
  EXPECT_EQ(value("torch.float32"), Argument(DType::float32));
  EXPECT_EQ(value("torch.bool"), Argument(DType::boolean));
  EXPECT_EQ(value("torch.strided"), Argument(Layout{"strided"}));
  EXPECT_EQ(value("torch.channels_last"), Argument(MemoryFormat{"channels_last"}));
  EXPECT_EQ(value("torch.per_channel_affine"), Argument::opaque("torch.per_channel_affine"));
  EXPECT_EQ(value("cpu"), Argument(Device{"cpu"}));
  EXPECT_EQ(value("cuda:0"), Argument(Device{"cuda", 0}));
  EXPECT_EQ(value("device(type='cuda', index=1)"), Argument(Device{"cuda", 1}));
  EXPECT_EQ(value("device(type='meta')"), Argument(Device{"meta"}));
  EXPECT_EQ(value("torch.device('cuda:2')"), Argument(Device{"cuda", 2}));
  EXPECT_EQ(value("device('cuda', 3)"), Argument(Device{"cuda", 3}));
  EXPECT_EQ(value("device(type='mychip')"), Argument(Device{"mychip"}));
}

TEST(Parse, QuotedStrings) {
  EXPECT_EQ(value("'a, (b] %x'"), Argument("a, (b] %x"));
  EXPECT_EQ(value("\"it's\""), Argument("it's"));
  EXPECT_EQ(value(R"('it\'s "so"')"), Argument("it's \"so\""));
  EXPECT_EQ(value(R"('\n\t\r\\\x01\x7f\a')"), Argument("\n\t\r\\\x01\x7f\a"));
  EXPECT_EQ(value(R"('\u00e9\U0001F600')"), Argument("\u00e9\U0001F600"));
  EXPECT_EQ(value(R"('\q \xzz')"), Argument("\\q \\xzz"));
  EXPECT_EQ(value("''"), Argument(""));
  EXPECT_EQ(value("'None'"), Argument("None"));
}

TEST(Parse, BareStrings) {
  EXPECT_EQ(value("floor"), Argument("floor"));
  EXPECT_EQ(value("a b"), Argument("a b"));
  EXPECT_EQ(value("it's"), Argument("it's"));
  EXPECT_EQ(value("say \"so\""), Argument("say \"so\""));
  EXPECT_EQ(value("bjk -> bik"), Argument("bjk -> bik"));
  EXPECT_EQ(value("1.5 times"), Argument("1.5 times"));
  EXPECT_EQ(value("layer.0.weight"), Argument("layer.0.weight"));
  EXPECT_EQ(value(""), Argument(""));
  EXPECT_EQ(value("first\nsecond"), Argument("first\nsecond"));
  EXPECT_EQ(value("[a, b c]"), Argument({"a", "b c"}));
  EXPECT_EQ(value("{k: a, b, j: c}"), Argument::dict({"k", "a, b", "j", "c"}));
}

// torch.fx prints a blank behind each comma, and strings bare.
TEST(Parse, CommasWithinBareStrings) {
  const Graph graph = parse_graph(
      "graph():\n%x = placeholder[target=x]\n%e = call_function[target=torch.functional.einsum](args = "
      "(...ij,...jk->...ik, "
      "%x, %x), kwargs = {mode: a,b})\nreturn e");
  const Node& einsum = *graph.find("e");
  ASSERT_EQ(einsum.args().size(), 3u);
  EXPECT_EQ(einsum.arg(0), Argument("...ij,...jk->...ik"));
  EXPECT_EQ(parse_graph(print_graph(graph)).find("e")->arg(0), einsum.arg(0));
}

TEST(Parse, Objects) {
  for (const char* text : {"<function f at 0x7f>", "<function <lambda> at 0x7f>", "<Color.RED: 1>", "range(0, 3)",
                           "b'a, b'", "my.Point(x=1, y=[2, (3)], z='a)')", "tensor([1., 2.])"}) {
    EXPECT_EQ(value(text), Argument::opaque(text));
  }
  EXPECT_EQ(value("opaque('any, \\n thing')"), Argument::opaque("any, \n thing"));
  EXPECT_EQ(value("f(x) + 1"), Argument("f(x) + 1"));
  EXPECT_EQ(value("<s> token"), Argument("<s> token"));
}

TEST(Parse, Containers) {
  EXPECT_EQ(value("[]"), Argument::list({}));
  EXPECT_EQ(value("()"), Argument::tuple({}));
  EXPECT_EQ(value("(1,)"), Argument::tuple({1}));
  EXPECT_EQ(value("(1)"), Argument(1));
  EXPECT_EQ(value("(a, )"), Argument::tuple({"a", ""}));
  EXPECT_EQ(value("[\n  1,\n  2,\n]"), Argument({1, 2}));
  EXPECT_EQ(value("[1, [2, (3, {})]]"), Argument({1, {2, Argument::tuple({3, Argument::dict({})})}}));
  EXPECT_EQ(value("{k: 1, 2: b, 'q r': None, (1, 2): [3]}"),
            Argument::dict(
                {"k", 1, 2, "b", "q r", nullptr, Argument::tuple({1, 2}), Argument::list({std::vector<Argument>{3}})}));
  EXPECT_EQ(value("slice(None, None, None)"), Argument::slice(nullptr, nullptr));
  EXPECT_EQ(value("slice(1, -1, 2)"), Argument::slice(1, -1, 2));
  EXPECT_EQ(value("slice(3)"), Argument::slice(nullptr, 3));
  const Graph graph =
      parse_graph("graph(%x):\n %y = call_function[target=f](args = (slice(x, %x, 'a'), [%x]), kwargs = {})");
  EXPECT_EQ(to_string(Argument::tuple(graph.find("y")->args())), "(slice(%x, %x, 'a'), [%x])");
}

TEST(Parse, Targets) {
  const auto target = [](const std::string& text, const char* op = "call_function") {
    Graph graph =
        parse_graph("graph():\n %y : = " + std::string(op) + "[target=" + text + "](args = (), kwargs = {})\n");
    return graph.find("y")->target().str();
  };
  EXPECT_EQ(target("torch.ops.aten.relu.default"), "aten::relu");
  EXPECT_EQ(target("aten::relu"), "aten::relu");
  EXPECT_EQ(target("aten::add.Tensor"), "aten::add.Tensor");
  EXPECT_EQ(target("torch.relu"), "torch.relu");
  EXPECT_EQ(target("operator.add"), "operator.add");
  EXPECT_EQ(target("_operator.add"), "operator.add");
  EXPECT_EQ(target("<built-in function add>"), "operator.add");
  EXPECT_EQ(target("<built-in function len>"), "builtins.len");
  EXPECT_EQ(target("<built-in function sqrt>"), "math.sqrt");
  EXPECT_EQ(target("<built-in method add of type object at 0x7f00>"), "torch.add");
  EXPECT_EQ(target("<OpOverload(op='aten.add', overload='Tensor')>"), "aten::add.Tensor");
  EXPECT_EQ(target("<OpOverload(op='aten.relu', overload='default')>"), "aten::relu");
  EXPECT_EQ(target("<OpOverloadPacket(op='aten.add')>"), "aten::add");
  EXPECT_EQ(target("<function f at 0x7f>"), "<function f at 0x7f>");
  EXPECT_EQ(target("table[0].fn"), "table[0].fn");
  EXPECT_EQ(target("'a]b\\n'"), "a]b\n");
  EXPECT_EQ(target("torch.ops.aten.relu.default", "call_module"), "torch.ops.aten.relu.default");
}

TEST(Parse, LayoutIsFree) {
  const Graph graph = parse_graph(
      "\xEF\xBB\xBF\n# a comment\n graph ( ) : # here too\r\n\r\n"
      "\t%x : torch.Tensor [#users=1] = placeholder[target=x]   \r\n"
      "%y:[num_users=7]=placeholder[target=y](default=None)\n"
      "   # between\n"
      "  %t : typing.Dict[str, typing.Optional[int]] = placeholder[target=t] # behind\n"
      "  %w = get_attr[target=w]\n"
      "  %f : f32[1, 3] = call_function[target=f](\n     args = (%x,\n  1),\n  kwargs = {a: 1,\n b: %y}\n  )\n"
      "  return (%f, y)\n\n#end");
  EXPECT_EQ(print_graph(graph), R"(graph():
    %x : torch.Tensor [num_users=1] = placeholder[target=x]
    %y : [num_users=2] = placeholder[target=y](default=None)
    %t : typing.Dict[str, typing.Optional[int]] [num_users=0] = placeholder[target=t]
    %w : [num_users=0] = get_attr[target=w]
    %f : f32[1, 3] [num_users=1] = call_function[target=f](args = (%x, 1), kwargs = {a: 1, b: %y})
    return (f, y)
)");
}

TEST(Parse, ParametersInTheHeader) {
  const Graph graph = parse_graph(
      "graph(%x, y : typing.Tuple[int, int], %z):\n  %y : = placeholder[target=*y](default=3)\n  return [x, y]\n");
  EXPECT_THAT(order(graph), ElementsAre("x", "y", "z", "output"));
  EXPECT_EQ(graph.find("y")->target(), "*y");
  EXPECT_EQ(graph.find("y")->arg(0), Argument(3));
  EXPECT_EQ(*graph.find("y")->find_meta()->get<std::string>(meta_key::kType), "typing.Tuple[int, int]");
  graph.lint();
}

TEST(Parse, Returns) {
  EXPECT_EQ(parse_graph("graph():").output_node(), nullptr);
  EXPECT_EQ(parse_graph("graph():\nreturn").output_node()->arg(0), Argument());
  EXPECT_EQ(parse_graph("graph():\n return None").output_node()->arg(0), Argument());
  EXPECT_EQ(parse_graph("graph():\n return 'x'").output_node()->arg(0), Argument("x"));
  EXPECT_EQ(parse_graph("graph():\n return (1, inf, torch.float16, device(type='cpu'))").output_node()->arg(0),
            Argument::tuple({1, INFINITY, DType::float16, Device{"cpu"}}));
  const Graph graph = parse_graph("graph(cpu, x):\n return {'a': cpu, 'b': [x, slice(x, None, None)]}");
  EXPECT_EQ(to_string(graph.output_node()->arg(0)), "{'a': %cpu, 'b': [%x, slice(%x, None, None)]}");
}

TEST(Parse, NamesAreKept) {
  const std::string text = R"(graph():
    %x_1 : [num_users=1] = placeholder[target=x]
    %x : [num_users=1] = placeholder[target=x_1]
    %x_01 : [num_users=1] = placeholder[target=z]
    %x_4000000000 : [num_users=1] = placeholder[target=z]
    %x_999999999 : [num_users=1] = placeholder[target=z]
    %return_value : [num_users=0] = get_attr[target=return]
    return [x, x_1, x_01, x_4000000000, x_999999999]
)";
  EXPECT_EQ(print_graph(parse_graph(text)), text);
}

TEST(Parse, ReservedNamesGetANumber) {
  const Graph graph = parse_graph(
      "graph():\n %input = placeholder[target=input]\n %input_1 = get_attr[target=w]\n return (%input, %input_1)");
  EXPECT_THAT(order(graph), ElementsAre("input_1", "input_2", "output"));
  EXPECT_EQ(to_string(graph.output_node()->arg(0)), "(%input_1, %input_2)");
}

TEST(Parse, ValuesOfPythonThatAreAmbiguous) {
  const Graph graph = parse_graph(
      "graph():\n  %x : = placeholder[target=x]\n"
      "  %w : = call_function[target=wrapped](args = (%x, it's, say \"so\", first\nsecond, , %x, 1.0), kwargs = {sep: "
      ", , end: )\\n})\n");
  const Node& wrapped = *graph.find("w");
  EXPECT_EQ(to_string(Argument::tuple(wrapped.args())), "(%x, \"it's\", 'say \"so\"', 'first\\nsecond', '', %x, 1.0)");
  EXPECT_EQ(*wrapped.kwarg("sep"), Argument(","));
  EXPECT_EQ(*wrapped.kwarg("end"), Argument(")\\n"));
}

}  // namespace fx::parse_test
