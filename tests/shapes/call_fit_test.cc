// Sizes of calls that have no row: found by making the call alone, and named.
#include <fxgraph/shapes/call_fit.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/parse.h>

namespace fx::call_fit_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CallFit, SaysWhatNoRowSays) {
  const struct {
    const char *call, *type;
  } kCalls[] = {{"aten::fft_rfft(args = (%x,))", "complex64[a, b//2 + 1]"},
                {"aten::diff(args = (%x,))", "float32[a, b - 1]"},
                {"aten::cartesian_prod(args = ([%v, %w],))", "float32[a*b, 2]"}};
  for (const auto& [call, type] : kCalls) {
    const std::string text = call;
    GraphModule module(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %v = call_function[target=aten::select.int](args = (%x, 1, 0))
    %w = call_function[target=aten::select.int](args = (%x, 0, 0))
    %y = call_function[target=)" + text.substr(0, text.find('(')) +
                                   "]" + text.substr(text.find('(')) + "\n    return y"));
    const SizeRange some{1, std::nullopt};
    const SymbolicShapes shapes = propagate_shapes(module, {dims("a", "b")}, {{"a", some}, {"b", some}});
    const Node* y = module.graph().find("y");
    ASSERT_TRUE(shapes[*y].tensor()) << call;
    EXPECT_EQ(shapes[*y].tensor()->str(), type) << call;
    EXPECT_THAT(shapes.said_by_others(), ElementsAre(y)) << call;
    EXPECT_THAT(shapes.unknown(), IsEmpty()) << call;
  }
}

// What data decide, and what follows no expression of the arguments, stays unknown.
TEST(CallFit, SaysNothingElse) {
  GraphModule module(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = call_function[target=aten::combinations](args = (%x, 3))
    return y)"));
  const SymbolicShapes shapes = propagate_shapes(module, {dims("a")}, {{"a", {4, std::nullopt}}});
  EXPECT_FALSE(shapes[*module.graph().find("y")].is_known());
  ASSERT_EQ(shapes.unknown().size(), 1u);
  EXPECT_THAT(shapes.said_by_others(), IsEmpty());
}

/// What is said of the one call of a program of %x, whose sizes are a and b.
AbstractValue said_of(const char* call) {
  const std::string text = call;
  GraphModule module(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = call_function[target=)" +
                                 text.substr(0, text.find('(')) + "]" + text.substr(text.find('(')) +
                                 "\n    return y"));
  return propagate_shapes(module, {dims("a", "b")})[*module.graph().find("y")];
}

// What holds at some sizes, and neither at 0, 1 nor where the operator refuses, is not said of all.
TEST(CallFit, SaysNothingThatSmallSizesBelie) {
  for (const char* call : {"aten::diff(args = (%x, 3))", "aten::cumulative_trapezoid.dx(args = (%x,))",
                           "aten::fft_rfft(args = (%x,))", "aten::cov(args = (%x,))"})
    EXPECT_FALSE(said_of(call).is_known()) << call;
}

// A few sizes do not say how many dimensions there are.
TEST(CallFit, SaysNothingOfRanks) {
  EXPECT_FALSE(said_of("aten::squeeze.dim(args = (%x, 0))").is_known());
  EXPECT_FALSE(said_of("aten::squeeze(args = (%x,))").is_known());
}

}  // namespace fx::call_fit_test
