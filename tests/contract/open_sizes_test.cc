// Which sizes vary, of programs that tie them, step them and leave them alone.
#include <fxgraph/contract/open_sizes.h>
#include <gtest/gtest.h>

#include <fxgraph/text/parse.h>

namespace fx::open_sizes_test {

#define ATEN(name, target, args) "%" name " = call_function[target=torch.ops.aten." target "](args = " args ")\n"

// Of x, and of y where the program takes it: `[x[0], 3] [x[0], 8*y[1]]`.
std::string open(const std::string& body, const std::vector<std::vector<std::int64_t>>& sizes,
                 SizeRanges* ranges = nullptr) {
  const char* kNames[] = {"x", "y"};
  std::string text = "graph():\n";
  std::vector<TensorInfo> examples;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += std::string("%") + kNames[i] + " = placeholder[target=" + kNames[i] + "]\n";
    examples.emplace_back().sizes = sizes[i];
  }
  const Graph graph = parse_graph(text + body + "return r");
  const OpenSizes found = open_sizes(
      examples, [&](std::size_t input, std::size_t dim) { return kNames[input] + ("[" + std::to_string(dim) + "]"); },
      [&](const std::vector<TensorType>& inputs, const SizeRanges& known) {
        return SymbolicShapes(graph, {inputs.begin(), inputs.end()}, {.ranges = known});
      });
  if (ranges) *ranges = found.ranges;
  std::string all;
  for (const TensorType& input : found.inputs) {
    all += all.empty() ? "[" : " [";
    for (std::size_t dim = 0; dim < input.sizes.size(); ++dim) all += (dim > 0 ? ", " : "") + input.sizes[dim].str();
    all += "]";
  }
  return all;
}

TEST(OpenSizes, AreAllThatNothingAsksOf) {
  EXPECT_EQ(open(ATEN("r", "relu.default", "(%x,)"), {{2, 3}}), "[x[0], x[1]]");
  EXPECT_EQ(open(ATEN("r", "mm.default", "(%x, %y)"), {{2, 3}, {3, 4}}), "[x[0], x[1]] [x[1], y[1]]");
}

TEST(OpenSizes, BroadcastAsInTheExample) {
  EXPECT_EQ(open(ATEN("r", "add.Tensor", "(%x, %y)"), {{5, 9}, {5, 9}}), "[x[0], x[1]] [x[0], x[1]]");
  EXPECT_EQ(open(ATEN("r", "add.Tensor", "(%x, %y)"), {{5, 9}, {1, 9}}), "[x[0], x[1]] [1, x[1]]");
  EXPECT_EQ(open(ATEN("r", "add.Tensor", "(%x, %y)"), {{1, 9}, {1, 9}}), "[x[0], x[1]] [x[0], x[1]]");
}

TEST(OpenSizes, HaveTheStepsThatAreAsked) {
  SizeRanges ranges;
  EXPECT_EQ(open(ATEN("r", "view.default", "(%x, [-1, 8])"), {{2, 16}}, &ranges), "[x[0], 8*x[1]]");
  EXPECT_EQ(open(ATEN("r", "view.default", "(%x, [-1, 8])"), {{8, 3}}), "[8*x[0], x[1]]");
  EXPECT_EQ(open(ATEN("r", "view.default", "(%x, [-1, 8])"), {{4, 6}}), "[4, 6]");  // neither alone
}

TEST(OpenSizes, AreFixedWhereAnEqualityReplacesNone) {
  const char* dot =
      ATEN("z", "zeros.default", "([6])") ATEN("f", "flatten.using_ints", "(%x,)") ATEN("r", "dot.default", "(%f, %z)");
  EXPECT_EQ(open(dot, {{2, 3}}), "[2, 3]");
  EXPECT_EQ(open(dot, {{1, 6}}), "[1, 6]");
}

TEST(OpenSizes, AreWhatAssertionsSay) {
  const char* checks = ATEN("a", "size.int", "(%x, 0)") ATEN("b", "size.int", "(%y, 0)")
                           "%d = call_function[target=operator.mul](args = (%a, 2))\n"
                           "%e = call_function[target=operator.eq](args = (%b, %d))\n"
                           "%f = call_function[target=torch._assert](args = (%e, 'x'))\n"
                           "%g = call_function[target=operator.le](args = (%a, 24))\n"
                           "%h = call_function[target=torch._assert](args = (%g, 'x'))\n";
  SizeRanges ranges;
  EXPECT_EQ(open(checks + std::string(ATEN("r", "sum.default", "(%y,)")), {{3, 4}, {6}}, &ranges),
            "[x[0], x[1]] [2*x[0]]");
  EXPECT_EQ(ranges, (SizeRanges{{"x[0]", {0, 24}}}));
}

TEST(OpenSizes, AreFixedWhereANumberIsAsked) {
  SizeRanges ranges;
  EXPECT_EQ(open(ATEN("w", "ones.default", "([7, 4])") ATEN("r", "linear.default", "(%x, %w)"), {{3, 4}}, &ranges),
            "[x[0], 4]");
  EXPECT_EQ(ranges, SizeRanges{});
}

}  // namespace fx::open_sizes_test
