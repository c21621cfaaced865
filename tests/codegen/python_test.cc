#include <fxgraph/codegen/python.h>

#include <gtest/gtest.h>

#include <fxgraph/text/parse.h>

namespace fx::python_test {

TEST(PythonCode, DefaultsStandBehindInputsWithoutOne) {
  const Graph graph = parse_graph(
      "graph():\n%x = placeholder[target=x]\n%m = placeholder[target=m](default=None)\n%w = placeholder[target=w]\n"
      "%k = placeholder[target=k](default=2)\nreturn (x, m, w, k)");
  EXPECT_THAT(python_code(graph), ::testing::HasSubstr("def forward(self, x, m, w, k = 2):"));
}

TEST(PythonCode, IsWhatTorchFxGenerates) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& param = graph.get_attr("param");
  Node& add = graph.call_function("operator.add", {x, param});
  Node& linear = graph.call_module("linear", {add});
  Node& clamp = graph.call_method("clamp", {linear}, {{"min", 0.0}, {"max", 1.0}});
  graph.output(clamp);
  EXPECT_EQ(python_code(graph),
            "def forward(self, x):\n"
            "    param = self.param\n"
            "    add = x + param;  x = param = None\n"
            "    linear = self.linear(add);  add = None\n"
            "    clamp = linear.clamp(min = 0.0, max = 1.0);  linear = None\n"
            "    return clamp\n");
}

TEST(PythonCode, SpellsPathsOperatorsAndDefaults) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y", 2);
  Node& conv = graph.call_module("layer1.0.conv", {x});
  Node& sum = graph.call_function("operator.iadd", {conv, y});
  Node& shape = graph.call_function("builtins.getattr", {sum, "shape"});
  Node& item = graph.call_function("operator.getitem", {shape, 0});
  Node& relu = graph.call_function("aten::relu", {sum});
  graph.call_function("torch._assert", {item, "rank"});
  graph.output(Argument::tuple({relu, item}));
  EXPECT_EQ(python_code(graph),
            "def forward(self, x, y = 2):\n"
            "    layer1_0_conv = getattr(self.layer1, \"0\").conv(x);  x = None\n"
            "    layer1_0_conv += y;  iadd = layer1_0_conv;  layer1_0_conv = y = None\n"
            "    getattr_1 = iadd.shape\n"
            "    getitem = getattr_1[0];  getattr_1 = None\n"
            "    relu = torch.ops.aten.relu.default(iadd);  iadd = None\n"
            "    _assert = torch._assert(getitem, 'rank');  _assert = None\n"
            "    return (relu, getitem)\n");
}

TEST(PythonModule, ImportsWhatItsAnnotationsName) {
  const Graph graph = parse_graph(R"(graph():
    %x : typing.List[torch.Tensor] [num_users=1] = placeholder[target=x]
    %y : Optional[Dict[str, Tensor]] [num_users=0] = placeholder[target=y](default=None)
    %z : my_types.Batch [num_users=0] = placeholder[target=z](default=None)
    %first : torch.Tensor [num_users=1] = call_function[target=operator.getitem](args = (%x, 0))
    return first)");
  EXPECT_EQ(python_module(graph, "Net"),
            "import builtins\nimport math\nimport operator\n\nimport torch\nfrom math import inf, nan\n"
            "from torch import device\nfrom torch import Tensor\nfrom typing import Dict\nfrom typing import Optional\n"
            "import typing\n\n\n"
            "class Net(torch.nn.Module):\n"
            "    def forward(self, x : typing.List[torch.Tensor], y : Optional[Dict[str, Tensor]] = None, z = None):\n"
            "        first : torch.Tensor = x[0];  x = None\n"
            "        return first\n");
  EXPECT_NE(python_code(graph).find("z : my_types.Batch = None"), std::string::npos);
}

// torch.jit of 1.13 takes no overloads; an overload that the arguments do not tell stays written.
TEST(PythonModule, CallsOperatorsWithoutOverloadWhereTheArgumentsTellIt) {
  const Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %relu = call_function[target=torch.ops.aten.relu.default](args = (%x,))
    %add = call_function[target=torch.ops.aten.add.Tensor](args = (%relu, %x), kwargs = {alpha: 2})
    %mul = call_function[target=torch.ops.aten.mul.Scalar](args = (%add, 2))
    %pow = call_function[target=torch.ops.aten.pow.Tensor_Tensor](args = (%mul, 2))
    return pow)");
  const std::string source = python_module(graph);
  EXPECT_NE(source.find("relu = torch.ops.aten.relu(x)"), std::string::npos) << source;
  EXPECT_NE(source.find("add = torch.ops.aten.add(relu, x, alpha = 2)"), std::string::npos) << source;
  EXPECT_NE(source.find("mul = torch.ops.aten.mul(add, 2)"), std::string::npos) << source;
  EXPECT_NE(source.find("pow_1 = torch.ops.aten.pow.Tensor_Tensor(mul, 2)"), std::string::npos) << source;
}

TEST(PythonModule, WritesWhatItsArgumentsChoose) {
  const Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = placeholder[target=y]
    %size = call_function[target=aten::size](args = (%x, -1))
    %mul = call_method[target=mul](args = (%x, %size), kwargs = {out: %y})
    %real = call_method[target=real](args = (%mul,))
    return real)");
  EXPECT_NE(python_code(graph).find("size = torch.ops.aten.size.int(x, -1)"), std::string::npos);
  const std::string source = python_module(graph);
  EXPECT_NE(source.find("size = torch.ops.aten.size(x, -1)"), std::string::npos) << source;
  EXPECT_NE(source.find("mul = torch.ops.aten.mul(x, size, out = y)"), std::string::npos) << source;
  EXPECT_NE(source.find("real = torch.ops.aten.real(mul)"), std::string::npos) << source;
}

// Of a number Python takes the first overload of `torch.ops.aten.Int`, which is for bools: 7.5 would be 1.
TEST(PythonModule, RoundsNumbersByItsOwnFunctions) {
  const Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %whole = call_function[target=aten::Int.float](args = (%x,))
    %real = call_function[target=aten::Float.int](args = (%whole,))
    return real)");
  const std::string source = python_module(graph);
  EXPECT_NE(source.find("whole = int(x)"), std::string::npos) << source;
  EXPECT_NE(source.find("real = float(whole)"), std::string::npos) << source;
}

TEST(PythonCode, OfAnEmptyGraphPasses) {
  Graph graph;
  EXPECT_EQ(python_code(graph), "def forward(self):\n    pass\n");
}

}  // namespace fx::python_test
