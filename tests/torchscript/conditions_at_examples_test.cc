// What was decided by the examples of a scripted file is asserted: of its inputs, each condition once.
#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include "tests/support/error_of.h"
#include "tests/torchscript/module_of_code.h"
#include "tests/torchscript/saved_and_loaded.h"

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

// As torch.nn.InstanceNorm2d, which is called whole, and runs as TorchScript.
torch::jit::Module norm_of(const std::string& code) {
  const auto unit = std::make_shared<torch::jit::CompilationUnit>();
  torch::jit::Module leaf(c10::QualifiedName("__torch__.torch.nn.modules.mine.Norm"), unit, true);
  leaf.register_attribute("training", c10::BoolType::get(), false);
  leaf.define(
      "def forward(self, x):\n  if x.dim() == 3:\n    x = x.unsqueeze(0)\n  n = 1\n"
      "  for i in range(2, len(x.size())):\n    n *= x.size(i)\n"
      "  return torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)\n");
  torch::jit::Module model(c10::QualifiedName("__torch__.mine.M"), unit, true);
  model.register_attribute("training", c10::BoolType::get(), false);
  model.register_module("norm", leaf);
  model.define(code);
  return model;
}

TEST(ConditionsAtExamples, GoThroughLeavesThatAskForRanks) {
  const auto module = norm_of(
      "def forward(self, x):\n  y = self.norm.forward(x[:, :, 1:])\n  if y.size(2) > 4:\n    y = y + 1\n  return y\n");
  const auto gm = from_torchscript(module, {.examples = {ones({1, 2, 9, 8})}});
  EXPECT_EQ(gm->contract().str(), "x must be of 4 dimensions\nx[2] must be at least 6\n");
  EXPECT_NE(gm->graph().find("norm"), nullptr);
  const SymbolicShapes four(gm->graph(), {dims("n", "c", "h", "w")}, shape_sources(*gm));
  EXPECT_TRUE(four.unknown().empty());
  // Of another rank nothing is said: the module goes another way there.
  const SymbolicShapes three(gm->graph(), {dims("c", "h", "w")}, shape_sources(*gm));
  EXPECT_FALSE(three.unknown().empty());
}

TEST(ConditionsAtExamples, GoThroughProductsByTheirEquation) {
  const auto module = module_of(
      "def forward(self, x, y):\n  z = torch.einsum(\"...ij,...jk->...ki\", [x, y])\n  if z.size(1) == z.size(2):\n"
      "    z = z + 1\n  return z\n");
  const auto gm = from_torchscript(module, {.examples = {ones({2, 3, 4}), ones({1, 4, 3})}});
  EXPECT_EQ(gm->contract().str(), "x must be of 3 dimensions\ny must be of 3 dimensions\nx[1] must be equal to y[2]\n");
  EXPECT_THAT(testing::one_line_error_of([&] {
                gm->run({ones({2, 5, 4}), ones({2, 4, 3})});
              }),
              HasSubstr("x[1] must be equal to y[2]"));
}

TEST(ConditionsAtExamples, GoThroughWindowsAndBack) {
  const auto module = module_of(
      "def forward(self, x):\n  b, h, w = x.size()\n  p, q = (3 - h % 3) % 3, (3 - w % 3) % 3\n"
      "  y = torch.constant_pad_nd(x, [0, q, 0, p])\n  m, n = y.size(1) // 3, y.size(2) // 3\n"
      "  z = y.view([b, m, 3, n, 3]).transpose(2, 3).reshape([b * m * n, 9])\n"
      "  z = z.view([z.size(0) // (m * n), m * n, 9])\n  if z.size(1) > 2:\n    z = z + 1\n"
      "  if z.size(0) > 1:\n    z = z * 2\n  return z\n");
  const auto gm = from_torchscript(module, {.examples = {ones({2, 4, 5})}});
  EXPECT_EQ(gm->graph().count(Op::call_function, "torch._assert"), gm->contract().conditions().size());
  EXPECT_THAT(gm->contract().str(), HasSubstr("x[0] must be at least 2\n"));
  const torch::NoGradGuard no_grad;
  for (const auto& sizes : {std::vector<std::int64_t>{2, 4, 5}, {3, 6, 9}, {2, 3, 7}}) {
    const IValue given = ones(sizes);
    EXPECT_TRUE(gm->run({given}).toTensor().equal(module.deepcopy().get_method("forward")({given}).toTensor()));
  }
}

TEST(ConditionsAtExamples, AnInputOfSeveralTypesIsOfOne) {
  const auto module = module_of(
      "def forward(self, x, v: Union[int, str, List[int]]):\n  if isinstance(v, int):\n    return x + v\n"
      "  if isinstance(v, str):\n    return x * len(v)\n  return x\n");
  const auto read = [&](const IValue& example) { return from_torchscript(module, {.examples = {ones({2}), example}}); };
  const auto number = read(3), word = read("ab"), list = read(std::vector<std::int64_t>{1});
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(number->run({ones({2}), 4}).toTensor().equal(ones({2}).toTensor() + 4));
  EXPECT_TRUE(word->run({ones({2}), "abc"}).toTensor().equal(ones({2}).toTensor() * 3));
  EXPECT_TRUE(list->run({ones({2}), std::vector<std::int64_t>{5}}).toTensor().equal(ones({2}).toTensor()));
  EXPECT_THAT(testing::one_line_error_of([&] {
                number->run({ones({2}), "abc"});
              }),
              HasSubstr("the program was read for inputs at which `v` is of type int"));
  EXPECT_THAT(testing::one_line_error_of([&] { list->run({ones({2}), 1}); }), HasSubstr("`v` is of type List[int]"));
  const torch::jit::Module saved = testing::saved_and_loaded(*number);
  EXPECT_TRUE(saved.get_method("forward")({ones({2}), 4}).toTensor().equal(ones({2}).toTensor() + 4));
  EXPECT_ANY_THROW(saved.get_method("forward")({ones({2}), 2.5}));
  const auto again = from_torchscript(saved);  // what is only asserted needs no example
  EXPECT_TRUE(again->run({ones({2}), 4}).toTensor().equal(ones({2}).toTensor() + 4));
  EXPECT_THAT(testing::one_line_error_of([&] { again->run({ones({2}), true}); }), HasSubstr("`v` is of type int"));
  EXPECT_THAT(testing::one_line_error_of([&] { from_torchscript(module); }),
              HasSubstr("the type of a value is known only while running; give examples"));
}

TEST(ConditionsAtExamples, WhatIsAskedAfterAChangeOfFormIsNotOfTheInput) {
  for (const char* change : {"x.unsqueeze_(0)", "x.unsqueeze_(0).add_(1)", "x.mul_(2).unsqueeze_(0)"}) {
    const auto gm = from_torchscript(module_of("def forward(self, x):\n  " + std::string(change) +
                                               "\n  if x.dim() == 2:\n    return x + 1\n  return x * 20\n"),
                                     {.examples = {ones({3})}});
    EXPECT_EQ(gm->contract().str(), "") << change;
    EXPECT_EQ(gm->run({ones({3})}).toTensor().dim(), 2);
    EXPECT_THAT(testing::one_line_error_of([&] { gm->run({ones({3, 2})}); }), HasSubstr("goes another way")) << change;
  }
  const auto written = from_torchscript(
      module_of("def forward(self, x):\n  x.add_(1)\n  if x.dim() == 2:\n    return x + 1\n  return x * 20\n"),
      {.examples = {ones({3, 2})}});
  EXPECT_EQ(written->contract().str(), "x must be of 2 dimensions\n");
}

TEST(ConditionsAtExamples, OneTensorGivenTwiceIsOne) {
  const IValue x = ones({3});
  const auto gm = from_torchscript(
      module_of("def forward(self, x, y):\n  x.unsqueeze_(0)\n  if y.dim() == 2:\n    return x + 1\n  return x * 20\n"),
      {.examples = {x, x}});
  EXPECT_EQ(x.toTensor().dim(), 1) << "examples stay as they are";
  const torch::Tensor once = torch::ones({3});
  EXPECT_TRUE(gm->run({once, once}).toTensor().equal(torch::full({1, 3}, 2.0f)));
}

TEST(ConditionsAtExamples, MessagesSayWhatTheyAskFor) {
  const auto gm = from_torchscript(
      module_of("def forward(self, x, mode: str):\n"
                "  assert x.size(0) < 4, \"{} rows, {} of {}\".format(x.size(0), 2.5, mode)\n  return x, mode[-1]\n"),
      {.examples = {ones({2, 3}), "sum"}});
  EXPECT_THAT(testing::one_line_error_of([&] {
                gm->run({ones({5, 3}), "sum"});
              }),
              HasSubstr("{x.size(0)} rows, 2.5 of {mode}"));
  EXPECT_EQ(gm->run({ones({2, 3}), "mean"}).toTupleRef().elements()[1].toStringRef(), "n");
}

TEST(ConditionsAtExamples, WarningsAreForWhoeverRunsTheFile) {
  struct Heard : c10::WarningHandler {
    void process(const c10::SourceLocation&, const std::string&, bool) override { ++count; }
    int count = 0;
  } heard;
  const c10::Warning::WarningHandlerGuard guard(&heard);
  torch::jit::Module module = module_of("def unused(self, x):\n  return x\n");
  module.register_attribute("scale", c10::OptionalType::create(c10::FloatType::get()), IValue());
  module.define(
      "def forward(self, x):\n  s = self.scale\n  if s is None:\n    s = 8 / x.size(1)\n    self.scale = s\n"
      "  torch.warn(\"it is slow\", 2)\n  return x * s\n");
  from_torchscript(module, {.examples = {ones({3, 4})}});
  EXPECT_EQ(heard.count, 0);
  module.get_method("forward")({ones({3, 4})});
  EXPECT_EQ(heard.count, 1);
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

TEST(ConditionsAtExamples, EqualSizesAreAskedForBesideWhatIsKnown) {
  for (const char* condition : {"x.size() == y.size() and x.dim() == 2", "x.size() == y.size() and 1 < 2",
                                "x.size() == y.size() or 2 < 1", "(x + y).size() == x.size() and 1 < 2"}) {
    const auto gm = from_torchscript(module_of("def forward(self, x, y):\n  if " + std::string(condition) +
                                               ":\n    return x * 20\n  return x + 1\n"),
                                     {.examples = {ones({2, 3}), ones({2, 3})}});
    EXPECT_EQ(gm->run({torch::ones({4, 3}), torch::ones({4, 3})}).toTensor().sum().item<float>(), 240) << condition;
    EXPECT_THAT(testing::one_line_error_of([&] {
                  gm->run({ones({1, 3}), ones({4, 3})});
                }),
                HasSubstr("goes another way"))
        << condition;
  }
  const auto strides = from_torchscript(
      module_of("def forward(self, x):\n  if x.stride(0) == 3 and 1 < 2:\n    return x * 20\n  return x + 1\n"),
      {.examples = {ones({2, 3})}});
  EXPECT_THAT(testing::one_line_error_of([&] {
                strides->run({torch::ones({3, 2}).t()});
              }),
              HasSubstr("goes another way"));
}

TEST(ConditionsAtExamples, RanksAreAskedForBeforeSizes) {
  const auto gm = from_torchscript(module_of("def forward(self, x):\n  if x.dim() == 3:\n    y = x + 1\n"
                                             "    if y.size(2) > 4:\n      return y\n  return x\n"),
                                   {.examples = {ones({2, 3, 9})}});
  EXPECT_THAT(testing::one_line_error_of([&] { gm->run({ones({3, 9})}); }), HasSubstr("x must be of 3 dimensions"));
  EXPECT_EQ(gm->contract().str(), "x must be of 3 dimensions\nx[2] must be at least 5\n");
}

// What the file would not have computed is not computed.
TEST(ConditionsAtExamples, WhatStopsAConditionStopsIt) {
  const auto module = module_of(
      "def forward(self, x, y, n: int):\n  if n > 5 and (x + y).size() == x.size():\n"
      "    return x * 2\n  return x\n");
  const auto gm = from_torchscript(module, {.examples = {ones({3}), ones({4}), 1}});
  EXPECT_TRUE(gm->run({ones({5}), ones({4}), 2}).toTensor().equal(ones({5}).toTensor()));
  EXPECT_EQ(gm->contract().str(), "n must be at most 5\n");
}

c10::List<torch::Tensor> images(std::initializer_list<std::vector<std::int64_t>> sizes) {
  c10::List<torch::Tensor> made;
  for (const auto& each : sizes) made.push_back(torch::ones(each));
  return made;
}

TEST(ConditionsAtExamples, AreOfThePartsOfLists) {
  const auto module = module_of(
      "def forward(self, xs: List[Tensor]):\n  ys: List[Tensor] = []\n  for x in xs:\n"
      "    y = torch.max_pool2d(x, [2, 2])\n    if y.size(2) > 3:\n      y = y + 1\n    ys.append(y)\n"
      "  xs.append(ys[0])\n  return torch.stack(ys)\n");
  const auto gm = from_torchscript(module, {.examples = {images({{1, 2, 8}, {1, 2, 9}})}});
  EXPECT_EQ(gm->contract().str(),
            "xs.len() must be 2\nxs[0] must be of 3 dimensions\nxs[1] must be of 3 dimensions\n"
            "xs[0].size(2) must be at least 8\nxs[1].size(2) must be at least 8\n");
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(gm->run({images({{2, 2, 9}, {2, 3, 8}})}).toTensor().sum().item<float>(), 32);
  EXPECT_THAT(testing::one_line_error_of([&] {
                gm->run({images({{1, 2, 8}, {1, 2, 7}})});
              }),
              HasSubstr("xs[1].size(2) must be at least 8, but is 7"));
  EXPECT_THAT(testing::one_line_error_of([&] { gm->run({images({{1, 2, 8}})}); }), HasSubstr("xs has 2 elements"));
  EXPECT_THAT(testing::one_line_error_of([&] {
                gm->run({images({{1, 2, 8}, {2, 8}})});
              }),
              HasSubstr("xs[1] must be of 3 dimensions, but is of 2"));
}

TEST(ConditionsAtExamples, GoThroughListsOfSizes) {
  struct Case {
    const char *condition, *contract;
  };
  for (const Case& c : {
           Case{"x.shape[::-1][0] > 4", "x must be of 3 dimensions\nx[2] must be at least 5\n"},
           Case{"x.shape[-2:][1] > 4", "x must be of 3 dimensions\nx[2] must be at least 5\n"},
           Case{"x.shape[::2] != [7, 3]", "x must be of 3 dimensions\nnot (x[0] == 7 and x[2] == 3) must hold\n"},
           Case{"x.chunk(2, 2)[1].size(2) > 2", "x must be of 3 dimensions\nx[2] must be at least 6\n"},
           Case{"torch.as_tensor([x.size(0), 2]).size(0) * x.size(2) > 4",
                "x must be of 3 dimensions\nx[2] must be at least 3\n"},
       }) {
    const auto gm = from_torchscript(
        module_of("def forward(self, x):\n  if " + std::string(c.condition) + ":\n    x = x + 1\n  return x\n"),
        {.examples = {ones({2, 3, 9})}});
    EXPECT_EQ(gm->contract().str(), c.contract) << c.condition;
  }
}

// One part is as long as all would be, and the last has the rest: none, where the size is too small for so many parts.
TEST(ConditionsAtExamples, PartsThatAreTakenAreThere) {
  const auto module =
      module_of("def forward(self, x):\n  a, b, c = x.chunk(3)\n  if c.size(0) > 1:\n    a = a + 1\n  return a\n");
  const auto gm = from_torchscript(module, {.examples = {ones({9})}});
  const torch::NoGradGuard no_grad;
  for (std::int64_t n = 1; n < 20; ++n) {
    const IValue x = ones({n});
    const auto parts = x.toTensor().chunk(3);
    if (parts.size() == 3 && parts[2].size(0) > 1) {
      EXPECT_TRUE(gm->run({x}).toTensor().equal(parts[0] + 1)) << n;
    } else {
      EXPECT_ANY_THROW(gm->run({x})) << n;
    }
  }
}

TEST(ConditionsAtExamples, AListIsAskedAgainWhereItHasChanged) {
  using Tensors = c10::List<torch::Tensor>;
  const auto list = [](int count) {
    Tensors made;
    for (int i = 0; i < count; ++i) made.push_back(torch::ones({1, 2}));
    return made;
  };
  const auto queue = from_torchscript(module_of("def forward(self, x, q: List[Tensor]):\n  for i in range(x.size(0)):\n"
                                                "    q.append(x[i:i + 1])\n    if len(q) > 3:\n      q.pop(0)\n"
                                                "  return torch.cat(q)\n"),
                                      {.examples = {ones({4, 2}), list(1)}});
  EXPECT_EQ(queue->run({ones({4, 2}), list(1)}).toTensor().size(0), 3);
  EXPECT_THAT(testing::one_line_error_of([&] { queue->run({ones({4, 2}), list(2)}); }), HasSubstr("goes another way"));
  const auto twice =
      from_torchscript(module_of("def forward(self, x, q: List[Tensor]):\n  if len(q) > 1:\n    x = x + 1\n"
                                 "  if len(q) > 1:\n    x = x * 2\n  return x\n"),
                       {.examples = {ones({4, 2}), list(2)}});
  EXPECT_EQ(twice->graph().count(Op::call_function, "torch._assert"), 1u);
}

TEST(ConditionsAtExamples, InputsAreOfTheKindsThatTheFileSays) {
  const auto gm = from_torchscript(module_of("def forward(self, x, n: int, f: float, b: bool):\n  return x * n + f\n"));
  EXPECT_EQ(gm->run({torch::ones({2}), 2, 0.5, true}).toTensor().sum().item<double>(), 5);
  EXPECT_EQ(gm->run({torch::ones({2}), 2, 1, true}).toTensor().sum().item<double>(), 6);
  for (const IValue& wrong : {IValue(2.5), IValue(), IValue(true), IValue("two"), IValue(torch::ones({}))})
    EXPECT_EQ(testing::one_line_error_of([&] {
                gm->run({ones({2}), wrong, 0.5, true});
              }),
              "the input 'n' must be an int, but is a " + wrong.tagKind());
}

TEST(ConditionsAtExamples, StayWhereTheyHangOnData) {
  const auto gm = from_torchscript(
      module_of("def forward(self, x):\n  kept = x[x > 0]\n  if kept.size(0) == 0:\n    return x\n  return kept * 2\n"),
      {.examples = {ones({4, 4})}});
  EXPECT_EQ(gm->contract().str(), "");
  EXPECT_EQ(gm->graph().count(Op::call_function, "torch._assert"), 1u);
}

}  // namespace fx::conditions_at_examples_test
