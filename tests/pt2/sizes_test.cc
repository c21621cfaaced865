// Expressions that are found for sizes, and sizes that are found free, compared with what made the numbers.
#include <fxgraph/export/free_sizes.h>
#include <fxgraph/export/size_arithmetic.h>
#include <fxgraph/export/size_fit.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fx::pt2::sizes_test {

// The example, each symbol alone at further values, both changed.
std::vector<Symbols> runs_of(const Symbols& example) {
  std::vector<Symbols> runs{example};
  for (const auto& [symbol, value] : example) {
    for (const std::int64_t offset : {1, 2, 5, 3, 4, 6, 7, 8, 9, 11, 13, 15, 16, 31, 32, 33, 64}) {
      runs.push_back(example);
      runs.back()[symbol] += offset;
    }
  }
  runs.push_back(example);
  for (auto& [symbol, value] : runs.back()) value += 2;
  return runs;
}

std::string fitted(const std::function<std::int64_t(std::int64_t, std::int64_t)>& size) {
  SizeFitter fitter(runs_of({{"s", 20}, {"t", 33}}));
  std::optional<SizeExpr> expr;
  // What a convolution makes is seen before what is made of it.
  for (const auto& part : std::vector<std::function<std::int64_t(std::int64_t, std::int64_t)>>{
           [](std::int64_t s, std::int64_t) { return (s + 1) / 2; },
           [](std::int64_t, std::int64_t t) { return (t - 3) / 4 + 1; }, size}) {
    std::vector<std::int64_t> seen;
    for (const Symbols& run : runs_of({{"s", 20}, {"t", 33}})) seen.push_back(part(run.at("s"), run.at("t")));
    expr = fitter.fit(seen);
  }
  if (!expr) return "none";
  for (std::int64_t s = 1; s < 200; s += 7) {
    for (std::int64_t t = 3; t < 200; t += 5)
      EXPECT_EQ(expr->evaluate({{"s", s}, {"t", t}}), size(s, t)) << expr->str();
  }
  return expr->str();
}

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

TEST(SizeFitter, FindsWhatOperatorsMake) {
  EXPECT_EQ(fitted([](auto, auto) { return 7; }), "7");
  EXPECT_EQ(fitted([](auto s, auto) { return 2 * s + 1; }), "2*s + 1");
  EXPECT_EQ(fitted([](auto s, auto t) { return s + 3 * t - 2; }), "s + 3*t - 2");
  EXPECT_EQ(fitted([](auto s, auto t) { return 4 * s * t; }), "4*s*t");
  EXPECT_NE(fitted([](auto s, auto) { return (s - 1) / 2 + 1; }), "none");
  EXPECT_NE(fitted([](auto s, auto t) { return 64 * ((s + 1) / 2) * ((t - 3) / 4 + 1); }), "none");
  EXPECT_NE(fitted([](auto s, auto t) { return ((s + 1) / 2) * ((t - 3) / 4 + 1) + 1; }), "none");
  EXPECT_NE(fitted([](auto s, auto t) { return (s + 1) / 2 + (t - 3) / 4 + 1; }), "none");
  EXPECT_NE(fitted([](auto s, auto) { return s * s * 3; }), "none");
  EXPECT_EQ(fitted([](auto s, auto t) { return s % 7 == 0 ? s : t; }), "none");
}

TEST(SizeFitter, FindsEveryDivision) {
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t divisor = 2 + static_cast<std::int64_t>(random() % 8),
                       shift = static_cast<std::int64_t>(random() % 8),
                       factor = 1 + static_cast<std::int64_t>(random() % 9);
    EXPECT_NE(fitted([=](auto s, auto) { return factor * ((s + shift) / divisor) + 2; }), "none");
  }
}

TEST(SizeFitter, FindsBounds) {
  EXPECT_EQ(fitted([](auto s, auto) { return std::min<std::int64_t>(s, 25); }), "Min(s, 25)");
  EXPECT_EQ(fitted([](auto s, auto) { return std::max<std::int64_t>(s + 3, 30); }), "Max(s + 3, 30)");
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

TEST(SizeArithmetic, SeesWhereExpressionsDiffer) {
  const auto any = [](const Symbols&) { return true; };
  const SizeExpr n = SizeExpr::symbol("n"), four = SizeExpr::integer(4), bounded = SizeExpr::call("Min", {n, four});
  const auto where = where_they_differ(bounded, four, {{"n", 60}}, {}, any);
  ASSERT_TRUE(where);
  EXPECT_LT(where->at("n"), 4);
  EXPECT_FALSE(where_they_differ(bounded, four, {{"n", 60}}, {{"n", {4, 100}}}, any));
  const SizeExpr far = SizeExpr::call("FloorDiv", {n, SizeExpr::integer(1000)});
  EXPECT_TRUE(where_they_differ(far, SizeExpr::integer(0), {{"n", 60}}, {}, any));
  EXPECT_FALSE(where_they_differ(SizeExpr::call("Add", {n, n}), SizeExpr::call("Mul", {SizeExpr::integer(2), n}),
                                 {{"n", 60}}, {}, any));
}

std::vector<FreeSize> found(
    const std::vector<std::pair<std::string, std::int64_t>>& places, const SizeQuestion& allowed,
    const SizeQuestion& runs = [](const Symbols&) { return true; }) {
  return find_free_sizes(places, allowed, runs);
}

TEST(FreeSizes, AloneInStepsTiedAndBounded) {
  const auto holds = [](const Symbols& at) {
    return at.at("c") == 3 && at.at("h") % 8 == 0 && at.at("x") == at.at("y") && at.at("t") >= 2 && at.at("t") <= 24;
  };
  const auto free = found({{"n", 1}, {"c", 3}, {"h", 64}, {"x", 5}, {"y", 5}, {"t", 8}}, holds);
  ASSERT_EQ(free.size(), 4u);
  EXPECT_EQ(free[0].places, (std::vector<std::string>{"n"}));
  EXPECT_EQ(free[1].places, (std::vector<std::string>{"h"}));
  EXPECT_EQ(free[1].step, 8);
  EXPECT_EQ(free[1].example, 8);
  EXPECT_EQ(free[2].places, (std::vector<std::string>{"t"}));
  EXPECT_EQ(free[2].range, (SizeRange{2, 24}));
  EXPECT_EQ(free[3].places, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(free[0].range, SizeRange{});
}

TEST(FreeSizes, WhatDoesNotRunIsFixedWhatBroadcastsIsTied) {
  const auto any = [](const Symbols&) { return true; };
  const auto adds = [](const Symbols& at) {  // x + y
    return at.at("x") == at.at("y") || at.at("x") == 1 || at.at("y") == 1;
  };
  const auto one = found({{"x", 1}, {"y", 1}}, any, adds);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].places, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(found({{"x", 4}}, any, [](const Symbols& at) { return at.at("x") == 4; }).empty());
}

}  // namespace fx::pt2::sizes_test
