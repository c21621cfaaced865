// What was decided by the examples of a scripted file is asserted: of its inputs, each condition once.
#include <fxgraph/ir/graph.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/import.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include "tests/support/error_of.h"
#include "tests/torchscript/module_of_code.h"

namespace fx::conditions_at_examples_test {

using c10::IValue;
using ::testing::HasSubstr;
using testing::module_of;
using testing::ones;
using Inputs = std::vector<IValue>;

TEST(ConditionsAtExamples, EachConditionIsAssertedOnce) {
  const torch::jit::Module module = module_of(
      "def forward(self, x):\n  if x.size(0) > 2:\n    x = x + 1\n  y = x * 2\n  if x.size(0) > 2:\n    y = y + 1\n"
      "  return y\n");
  const auto gm = from_torchscript(module, {.examples = {ones({3, 2})}});
  EXPECT_EQ(gm->graph().count(Op::call_function, "torch._assert"), 2u) << "x is another value in the second";
  const auto twice = from_torchscript(module_of("def forward(self, x):\n  y = x\n  if x.size(0) > 2:\n    y = x + 1\n  "
                                                "if x.size(0) > 2:\n    y = y + 1\n  return "
                                                "y\n"),
                                      {.examples = {ones({3, 2})}});
  EXPECT_EQ(twice->graph().count(Op::call_function, "torch._assert"), 1u);
  const auto steps = module_of(
      "def forward(self, x):\n  y = x\n  if x.size(1) % 16 == 0:\n    y = y + 1\n  if x.size(1) % "
      "8 == 0:\n    y = y * 2\n  return y\n");
  const auto implied = from_torchscript(steps, {.examples = {ones({5, 32})}});
  EXPECT_EQ(implied->contract().str(), "x[1] must be a multiple of 16\n");
}

TEST(ConditionsAtExamples, WhatIsKnownIsNoPartOfACondition) {
  const auto read = [](const std::string& condition, Inputs example) {
    return from_torchscript(
               module_of("def forward(self, x, how: str):\n  if " + condition + ":\n    x = x + 1\n  return x\n"),
               {.examples = std::move(example)})
        ->contract()
        .str();
  };
  EXPECT_EQ(read("x.dim() == 2 or 3 < 2", {ones({2, 3}), "sum"}), "x must be of 2 dimensions\n");
  EXPECT_EQ(read("x.dim() != 2 and 3 < 2", {ones({2, 3}), "sum"}), "");
  EXPECT_EQ(read("not x.size(0) > 5", {ones({2, 3}), "sum"}), "x[0] must be at most 5\n");
  EXPECT_EQ(read("how == \"mean\"", {ones({2, 3}), "sum"}), "how must not be 'mean'\n");
}

TEST(ConditionsAtExamples, ConditionsAreSaidInWords) {
  const auto gm = from_torchscript(
      module_of("def forward(self, x):\n  n = 8 - x.size(0) % 8\n  if n != 8:\n    x = torch.cat([x, x[0:n]])\n"
                "  if x.dim() == 2:\n    x = x + 1\n  return x\n"),
      {.examples = {ones({16, 3})}});
  EXPECT_THAT(testing::one_line_error_of([&] {
                gm->forward(torch::ones({9, 3}));
              }),
              HasSubstr("inputs at which (8 - (x.size(0) % 8)) == 8: `if n != 8:"));
  EXPECT_THAT(testing::one_line_error_of([&] { gm->forward(torch::ones({8})); }),
              HasSubstr("inputs at which x.dim() == 2: `if x.dim() == 2:"));
}

TEST(ConditionsAtExamples, AreOfTheInputs) {
  const auto module = module_of(
      "def forward(self, x):\n  y = torch.max_pool2d(x, [2, 2])\n  b, c, h, w = y.size()\n  m = (7 - h % 7) % 7\n"
      "  if h + m <= 7:\n    y = y + 1\n  if y.size(2) + m <= 7:\n    y = y * 2\n  if w % 2 == 0:\n    y = y - 1\n"
      "  return y\n");
  const auto gm = from_torchscript(module, {.examples = {ones({1, 2, 9, 8})}});
  EXPECT_EQ(gm->contract().str(),
            "x must be of 4 dimensions\nx[2] must be at most 15\nx[3]//2 must be a multiple of 2\n");
  const torch::NoGradGuard no_grad;
  for (const std::int64_t h : {2, 5, 14, 15}) {
    const IValue given = ones({2, 1, h, 12});
    EXPECT_TRUE(gm->run({given}).toTensor().equal(module.deepcopy().get_method("forward")({given}).toTensor())) << h;
  }
  EXPECT_THAT(testing::one_line_error_of([&] {
                gm->run({ones({1, 2, 16, 8})});
              }),
              HasSubstr("x[2] must be at most 15, but is 16"));
  EXPECT_THAT(testing::one_line_error_of([&] { gm->run({ones({1, 2, 9, 6})}); }), HasSubstr("goes another way"));
}

TEST(ConditionsAtExamples, AreOfSizesAsTheyWereGiven) {
  const auto module = module_of(
      "def forward(self, x):\n  y = x + 1\n  n = y.size(0)\n  x.t_()\n  if n > 4:\n    y = y * 2\n  return y, x\n");
  const torch::NoGradGuard no_grad;
  const auto gm = from_torchscript(module, {.examples = {ones({6, 2})}});
  EXPECT_EQ(gm->contract().str(), "x must be of 2 dimensions\nx[0] must be at least 5\n");
  EXPECT_EQ(gm->run({ones({5, 3})}).toTupleRef().elements()[1].toTensor().size(0), 3);
  EXPECT_THAT(testing::one_line_error_of([&] { gm->run({ones({3, 6})}); }), HasSubstr("x[0] must be at least 5"));
}

TEST(ConditionsAtExamples, StayWhereTheyHangOnData) {
  const auto gm = from_torchscript(
      module_of("def forward(self, x):\n  kept = x[x > 0]\n  if kept.size(0) == 0:\n    return x\n  return kept * 2\n"),
      {.examples = {ones({4, 4})}});
  EXPECT_EQ(gm->contract().str(), "");
  EXPECT_EQ(gm->graph().count(Op::call_function, "torch._assert"), 1u);
}

}  // namespace fx::conditions_at_examples_test
