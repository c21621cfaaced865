// Sizes of values as expressions of the inputs', through calls in any spelling and through arithmetic of sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include "tests/support/short_graph.h"

namespace fx::symbolic_shapes_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Node& node_of(const Graph& graph, std::string_view name) {
  for (const Node& node : graph.nodes()) {
    if (node.name() == name) return node;
  }
  throw Error(ErrorKind::invalid_argument, "no such node");
}

/// `lines` of x and w, which are given; what is said of %y.
struct Said {
  std::string y;
  std::vector<std::string> conditions;
  std::vector<std::string> unknown;
  std::string refused;
};
Said said(const std::string& lines, TensorType x, TensorType w = dims(8, 3, 3, 3)) {
  const Graph graph = testing::graph_of(lines + "\nreturn y", "x w");
  const SymbolicShapes shapes(graph, {std::move(x), std::move(w)});
  Said all;
  const AbstractValue& y = shapes[node_of(graph, "y")];
  all.y = y.tensor() ? y.tensor()->str() : y.number() ? y.number()->str() : y.is_known() ? "something" : "nothing";
  for (const SymbolicShapes::Asked& each : shapes.conditions())
    all.conditions.push_back("%" + each.node->name() + ": " + each.condition.str());
  for (const SymbolicShapes::Unknown& each : shapes.unknown()) all.unknown.push_back(each.why);
  all.refused = shapes.refused();
  return all;
}

TEST(SymbolicShapes, AreExpressionsOfTheInputs) {
  struct Case {
    const char *lines, *y;
  };
  for (const Case& c : {
           Case{"y = aten::conv2d(%x, %w, None, [2, 2], [1, 1])", "float32[batch, 8, (h - 1)//2 + 1, (w - 1)//2 + 1]"},
           Case{"y = torch.nn.functional.conv2d(%x, %w)", "float32[batch, 8, h - 2, w - 2]"},
           Case{"y = aten::upsample_nearest2d.vec(%x, None, [2.5, 2.0])",
                "float32[batch, 3, TruncToInt(2.5*ToFloat(h)), TruncToInt(2.0*ToFloat(w))]"},
           Case{"y = aten::reshape(%x, [-1, 4])", "float32[(3*batch*h*w)//4, 4]"},
           Case{"y = torch.flatten(%x, 1)", "float32[batch, 3*h*w]"},
           Case{"n = aten::size.int(%x, 0)\ny = aten::reshape(%x, [%n, -1])", "float32[batch, 3*h*w]"},
           Case{"y = aten::reshape(%x, [-1, 3])", "float32[batch*h*w, 3]"},
           Case{"y = aten::cat([%x, %x], 2)", "float32[batch, 3, 2*h, w]"},
           Case{"s = builtins.getattr(%x, 'shape')\nn = operator.getitem(%s, 2)\ny = operator.floordiv(%n, 2)", "h//2"},
           Case{"y = aten::slice.Tensor(%x, 2, 1)", "float32[batch, 3, Max(h - 1, 0), w]"},
           Case{"y = aten::transpose.int(%x, 1, -1)", "float32[batch, w, h, 3]"},
           Case{"p = aten::chunk(%x, 3, 1)\ny = operator.getitem(%p, 2)", "float32[batch, 1, h, w]"},
           Case{"y = aten::add.Tensor(%x, %x)", "float32[batch, 3, h, w]"},
           Case{"y = aten::mean.dim(%x, [2, 3])", "float32[batch, 3]"},
           Case{"y = aten::nonzero(%x)", "int64[u0, 4]"},
           Case{"y = aten::max_pool2d(%x, [3, 3], [2, 2], [1, 1])",
                "float32[batch, 3, (h - 1)//2 + 1, (w - 1)//2 + 1]"},
           Case{"y = aten::matmul(%x, %x)", "float32[batch, 3, h, h]"},
       })
    EXPECT_EQ(said(c.lines, dims("batch", 3, "h", "w")).y, c.y) << c.lines;
}

TEST(SymbolicShapes, SayWhatIsAsked) {
  EXPECT_THAT(said("y = aten::conv2d(%x, %w)", dims("n", "c", "h", "w")).conditions,
              ElementsAre("%y: c must be 3", "%y: h - 3 must be at least 0", "%y: w - 3 must be at least 0"));
  EXPECT_THAT(said("a = aten::size.int(%x, 0)\nb = operator.mod(%a, 8)\nc = operator.eq(%b, 0)\n"
                   "d = torch._assert(%c, 'x')\ny = aten::reshape(%x, [-1, 8])",
                   dims("n", 2))
                  .conditions,
              ElementsAre("%d: n must be a multiple of 8"));
}

// What a later call asks is so from the start.
TEST(SymbolicShapes, PutInWhatIsAskedLater) {
  const Graph graph = testing::graph_of("y = aten::relu(%x)\nz = aten::linear(%y, %w)\nreturn z", "x w");
  const SymbolicShapes shapes(graph, {dims("n", "k"), dims(4, 512)});
  EXPECT_EQ(shapes[node_of(graph, "y")].tensor()->str(), "float32[n, 512]");
  EXPECT_EQ(shapes.of(node_of(graph, "z"))[0].str(), "n");
}

// Sizes that may be 1 or equal are neither taken for 1 nor for equal.
TEST(SymbolicShapes, AssumeNothingOfWhatBroadcasts) {
  const Said unknown = said("y = aten::add.Tensor(%x, %w)", dims("a", 3), dims("b", 3));
  EXPECT_EQ(unknown.y, "float32[u0, 3]");
  EXPECT_THAT(unknown.conditions, ElementsAre("%y: a == b or a == 1 or b == 1 must hold"));
  EXPECT_EQ(said("y = aten::add.Tensor(%x, %w)", dims("a", 3), dims(1, 3)).y, "float32[a, 3]");
  EXPECT_EQ(said("y = aten::add.Tensor(%x, %w)", dims("a", 3), dims(5, 3)).y, "float32[5, 3]");
}

TEST(SymbolicShapes, NameWhatIsNotKnown) {
  const Graph graph = testing::graph_of("y = my::op(%x)\nz = aten::relu(%y)\nreturn z", "x w");
  const SymbolicShapes shapes(graph, {dims("n"), dims(1)});
  try {
    shapes.of(node_of(graph, "z"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("%z has no sizes that are known"));
  }
  EXPECT_THAT(said("y = aten::svd(%x)", dims("n", 3)).unknown, ElementsAre("aten::svd has no row"));
}

TEST(SymbolicShapes, RefuseWhatNoSizeMends) {
  EXPECT_THAT(said("y = aten::conv2d(%x, %w)", dims("n", 4, "h", "w")).refused, HasSubstr("%y: aten::conv2d"));
}

TEST(SymbolicShapes, StopAtARefusalWhereNothingElseIsAsked) {
  const Graph graph = testing::graph_of("y = aten::conv2d(%x, %w)\nz = aten::svd(%x)\nreturn z", "x w");
  const std::vector<AbstractValue> inputs = {dims("n", 4, "h", "w"), dims(8, 3, 3, 3)};
  const SymbolicShapes all(graph, inputs), first(graph, inputs, {.may_stop = true});
  EXPECT_EQ(all.refused(), first.refused());
  EXPECT_EQ(all.unknown().size(), 1U);
  EXPECT_TRUE(first.unknown().empty());
  EXPECT_TRUE(SymbolicShapes(graph, {dims("n", 3, "h", "w"), dims(8, 3, 3, 3)}, {.may_stop = true}).refused().empty());
}

// Expressions do not grow with the graph.
TEST(SymbolicShapes, OfLongChains) {
  std::string lines = "y0 = aten::relu(%x)\n";
  constexpr int kLength = 2000;
  for (int i = 1; i < kLength; ++i)
    lines += "y" + std::to_string(i) + " = aten::max_pool1d(%y" + std::to_string(i - 1) + ", [3], [2], [1])\n";
  const Said of_chain = said(lines + "y = aten::relu(%y" + std::to_string(kLength - 1) + ")", dims(1, "n"));
  EXPECT_LT(of_chain.y.size(), 1500U);
}

// LibTorch gives it the sizes of the result, whatever it had.
TEST(SymbolicShapes, OfWhatHoldsAResult) {
  const Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %e = call_function[target=aten::empty.memory_format](args = ([0],))
    %y = call_function[target=aten::add.out](args = (%x, 1), kwargs = {out: %e})
    return y)");
  const SymbolicShapes shapes(graph, {dims("a", "b")});
  ASSERT_TRUE(shapes[*graph.find("y")].tensor());
  EXPECT_EQ(shapes[*graph.find("y")].tensor()->str(), "float32[a, b]");
  EXPECT_TRUE(shapes.conditions().empty());
}

}  // namespace fx::symbolic_shapes_test
