// Expressions that are found for sizes, and sizes that are found free, compared with what made the numbers.
#include <fxgraph/contract/arithmetic.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fx::pt2::sizes_test {

TEST(SizeExpr, NumbersWithAPointAreKept) {
  const std::string text =
      "TruncToInt(Mul(Float('2.5', precision=53), ToFloat(Symbol('s69', positive=True, integer=True))))";
  const SizeExpr expr = SizeExpr::parse(text);
  EXPECT_EQ(expr.dump(), text);
  EXPECT_EQ(expr.str(), "TruncToInt(2.5*ToFloat(s69))");
  EXPECT_EQ(expr.evaluate({{"s69", 5}}), 12);
  EXPECT_EQ(expr.evaluate({{"s1", 5}}), std::nullopt);
  for (const char* damaged : {"Float('2.5'", "Float(2.5)", "Float('2.5", "Float('2.5', precision)", "Float("})
    EXPECT_THROW(SizeExpr::parse(damaged), Error) << damaged;
}

TEST(SizeExpr, NumbersWithAPointAreComputedAsFloats) {
  const auto value = [](const std::string& text, std::int64_t n) { return SizeExpr::parse(text).evaluate({{"n", n}}); };
  const std::string n = "ToFloat(Symbol('n', positive=True, integer=True))";
  EXPECT_EQ(value("TruncToInt(Mul(Float('0.28999999999999998', precision=53), " + n + "))", 100), 28);  // not 29
  EXPECT_EQ(value("TruncToInt(Mul(Integer(-1), FloatTrueDiv(" + n + ", Float('2.0', precision=53))))", 5), -2);
  EXPECT_EQ(value("FloorToInt(Mul(Integer(-1), FloatTrueDiv(" + n + ", Float('2.0', precision=53))))", 5), -3);
  EXPECT_EQ(value("CeilToInt(Add(Float('0.25', precision=53), " + n + "))", 5), 6);
  EXPECT_EQ(value("RoundToInt(IntTrueDiv(Symbol('n', positive=True, integer=True), Integer(2)))", 5), 2);
  EXPECT_EQ(value("TruncToInt(FloatTrueDiv(" + n + ", Float('0.0', precision=53)))", 5), std::nullopt);
  EXPECT_EQ(value("TruncToInt(Float('1e300', precision=53))", 5), std::nullopt);
  EXPECT_EQ(value("TruncToInt(Float('nan', precision=53))", 5), std::nullopt);
  EXPECT_EQ(value(n, 5), std::nullopt);  // no whole number, whatever it is
  EXPECT_EQ(SizeExpr::parse(n).evaluate_real({{"n", 5}}), 5.0);
  EXPECT_EQ(SizeExpr::real(0.7).dump(), "Float('0.69999999999999996', precision=53)");  // as Python writes them
  EXPECT_EQ(SizeExpr::real(2).dump(), "Float('2.0', precision=53)");
}

// What a call says of its number, beside what runs suggest.
TEST(SizeArithmetic, SaysWhatRunsDoNotShow) {
  Graph graph;
  Node& n = graph.placeholder("n");
  const auto said = [&](const char* target, std::vector<Argument> args) {
    return said_by(graph.call_function(target, args), [](const Node&) { return std::optional(SizeExpr::symbol("n")); });
  };
  const struct {
    const char* target;
    std::vector<Argument> args;
    const char* text;
  } kCalls[] = {
      {"operator.add", {n, 2}, "n + 2"},
      {"aten::sub.int", {n, 2}, "n - 2"},
      {"operator.sub", {3, n}, "3 - n"},
      {"operator.neg", {n}, "-n"},
      {"torch.sym_min", {n, 4}, "Min(n, 4)"},
      {"builtins.max", {2, n}, "Max(2, n)"},
      {"operator.floordiv", {n, 8}, "n//8"},
      {"aten::remainder.int", {n, 8}, "n%8"},
      {"torch.sym_float", {n}, "ToFloat(n)"},
      {"operator.mul", {n, 2.5}, "ToFloat(n)*2.5"},
      {"math.trunc", {n}, "n"},
      {"operator.truediv", {n, 2}, "IntTrueDiv(n, 2)"},
  };
  for (const auto& [target, args, text] : kCalls) EXPECT_EQ(said(target, args).value().str(), text) << target;
  EXPECT_FALSE(said("operator.xor", {n, 2}));
  EXPECT_FALSE(said("operator.floordiv", {n, 2.5}));
}

}  // namespace fx::pt2::sizes_test
