// Right rules pass their own test, wrong ones are caught with a small counter-example.
#include <fxgraph/testing/self_test.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/program/traced_functions.h>
#include <fxgraph/testing/testing.h>

namespace fx::self_test_test {

using ::testing::HasSubstr;
using testing::KeepsItsPromise;
using ::testing::Not;

const Rule kDivByConstant{
    .name = "div-by-constant",
    .pattern = [](torch::Tensor x, double c) { return x / c; },
    .when = [](const Match& m) { return m.literal("y") != 0.0; },
    .replacement = [](torch::Tensor x, double c) { return x * (1.0 / c); },
    .promise = Promise::approximate,
};

TEST(SelfTest, RightRulesPass) {
  EXPECT_THAT(kDivByConstant, KeepsItsPromise());
  EXPECT_THAT((Rule{.name = "clamp", .pattern = "aten::relu(x)", .replacement = "aten::clamp_min(x, 0)"}),
              KeepsItsPromise());
}

struct WrongRule {
  const char* what;
  const char* pattern;
  const char* replacement;
  Promise promise = Promise::bit_exact;
};

class WrongRules : public ::testing::TestWithParam<WrongRule> {};

TEST_P(WrongRules, AreCaught) {
  const Rule rule{.name = GetParam().what,
                  .pattern = GetParam().pattern,
                  .replacement = GetParam().replacement,
                  .promise = GetParam().promise};
  const SelfTestResult result = self_test(rule);
  EXPECT_FALSE(result.counter_example.empty()) << result;
  EXPECT_THAT(rule, Not(KeepsItsPromise()));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongRules,
    ::testing::Values(
        WrongRule{"division is no exact multiplication", "aten::div.Scalar(x, 3)", "aten::mul.Scalar(x, 0.33333333)"},
        WrongRule{"-0 + 0 is 0", "aten::add.Scalar(x, 0)", "x"},
        WrongRule{"NaN * 0 is NaN", "aten::mul.Scalar(x, 0)", "aten::zeros_like(x)"},
        WrongRule{"x - x of infinity", "aten::sub.Tensor(x, x)", "aten::zeros_like(x)"},
        WrongRule{"-inf * 0", "aten::relu(x)", "aten::mul.Tensor(aten::gt.Scalar(x, 0), x)"},
        WrongRule{"a size-1 dimension", "aten::add.Tensor(x, y)", "aten::add.Tensor(x, aten::expand_as(y, x))"},
        WrongRule{"alpha is forgotten", "aten::add.Tensor(x, y, alpha=2)", "aten::add.Tensor(x, y)"},
        WrongRule{"swapped operands", "aten::sub.Tensor(x, y)", "aten::sub.Tensor(y, x)"},
        WrongRule{"integers divide truly", "aten::div.Scalar(x, 2)",
                  "aten::div.Scalar_mode(x, 2, rounding_mode='floor')", Promise::approximate},
        WrongRule{"another axis", "aten::softmax.int(x, -1)", "aten::softmax.int(x, 0)", Promise::approximate},
        WrongRule{"tanh for erf", "aten::gelu(x)", "aten::gelu(x, approximate='tanh')", Promise::bit_exact}),
    [](const auto& info) { return "n" + std::to_string(info.index); });

TEST(SelfTest, CounterExamplesAreSmallAndReadable) {
  const SelfTestResult result = self_test({.name = "wrong", .pattern = "aten::relu(x)", .replacement = "aten::abs(x)"});
  EXPECT_THAT(result.counter_example, HasSubstr("aten.relu"));
  EXPECT_THAT(result.counter_example, HasSubstr("x = "));
  EXPECT_THAT(result.counter_example, HasSubstr("before: "));
  EXPECT_THAT(result.counter_example, HasSubstr("aten.abs"));
  EXPECT_LT(result.counter_example.size(), 700u) << result.counter_example;
}

TEST(SelfTest, ARuleThatNeverFiresProvesNothing) {
  const SelfTestResult result = self_test({.name = "never",
                                           .pattern = "aten::relu(x)",
                                           .when = [](const Match&) { return false; },
                                           .replacement = "aten::clamp_min(x, 0)"});
  EXPECT_FALSE(result.passed());
  std::ostringstream out;
  out << result;
  EXPECT_THAT(out.str(), HasSubstr("fired on 0 of them, fewer than the 20"));
}

}  // namespace fx::self_test_test
