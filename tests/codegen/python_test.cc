#include "codegen/python.h"

#include <gtest/gtest.h>

#include "text/parse.h"

namespace fx {
namespace {

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

TEST(PythonCode, OfAnEmptyGraphPasses) {
  Graph graph;
  EXPECT_EQ(python_code(graph), "def forward(self):\n    pass\n");
}

}  // namespace
}  // namespace fx
