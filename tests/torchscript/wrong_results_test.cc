// What files and programs of TorchScript say is what is loaded and saved: lengths of lists, names of constants,
// lists in lists, numbers whose text says less than they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/error_of.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::wrong_results_test {

using ::testing::HasSubstr;

torch::Tensor sample() { return torch::arange(12, torch::kFloat).view({3, 4}) - 5; }

torch::jit::Module script(const std::string& name = "__torch__.mine.M") {
  torch::jit::Module module(c10::QualifiedName(name), std::make_shared<torch::jit::CompilationUnit>(), true);
  module.register_attribute("training", c10::BoolType::get(), false);
  return module;
}

torch::jit::Module script_of(const std::string& code) {
  torch::jit::Module module = script();
  module.define(code);
  return module;
}

TEST(Unpacking, AListOfAnotherLengthRaises) {
  const std::pair<const char*, int> kPrograms[] = {
      {"def forward(self, x):\n  a, b = torch.unbind(x)\n  return a + b\n", 2},
      {"def forward(self, x):\n  a, b = torch.split(x, 1)\n  return a + b\n", 2},
      {"def forward(self, x):\n  a, b = torch.chunk(x, 2)\n  return a + b\n", 0},
      {"def forward(self, x):\n  a, b, c = torch.chunk(x, 3)\n  return a + b\n", 3},
      {"def forward(self, x):\n  a, b = torch.unbind(x)\n  return a * 2\n", 2},
  };
  for (const auto& [code, length] : kPrograms) {
    torch::jit::Module module = script_of(code);
    const auto gm = from_torchscript(module);
    torch::jit::Module again = testing::saved_and_loaded(*gm);
    for (int rows = 1; rows < 5; ++rows) {
      const torch::Tensor x = torch::arange(4 * rows, torch::kFloat).view({rows, 4});
      torch::Tensor expected;
      try {
        expected = module.forward({x}).toTensor();
      } catch (const std::exception&) {
      }
      if (!expected.defined()) {
        EXPECT_THROW(gm->forward(x), Error) << code << rows;
        EXPECT_THROW(Interpreter(*gm).run({x}), Error) << code << rows;
        EXPECT_ANY_THROW(again.forward({x})) << code << rows;
      } else {
        EXPECT_TRUE(torch::equal(gm->forward(x), expected)) << code << rows;
        EXPECT_TRUE(torch::equal(again.forward({x}).toTensor(), expected)) << code << rows;
      }
    }
  }
  const auto gm = from_torchscript(script_of("def forward(self, x):\n  a, b = x.size()\n  return x * (a + b)\n"));
  EXPECT_TRUE(torch::equal(gm->forward(sample()), sample() * 7));
  EXPECT_THAT(testing::error_of([&] { gm->forward(sample().unsqueeze(0)); }), HasSubstr("expected 2 values to unpack"));
}

TEST(Attributes, ListsInListsOutliveTheCall) {
  torch::jit::Module module = script();
  const c10::List<int64_t> inner({1, 2});
  c10::List<c10::List<int64_t>> lists;
  lists.push_back(inner);
  module.register_attribute("lists", c10::IValue(lists).type(), lists);
  module.define("def forward(self, x):\n  self.lists[0].append(3)\n  return x * len(self.lists[0])\n");
  EXPECT_THAT(testing::error_of([&] { from_torchscript(module); }), HasSubstr("would outlive the call"));

  torch::jit::Module read = script();
  read.register_attribute("lists", c10::IValue(lists).type(), lists);
  c10::List<c10::List<double>> reals;
  reals.push_back(c10::List<double>({0.5, 2.0}));
  read.register_attribute("reals", c10::IValue(reals).type(), reals);
  c10::List<c10::List<at::Tensor>> tensors;
  tensors.push_back(c10::List<at::Tensor>({sample(), sample() + 1}));
  read.register_attribute("tensors", c10::IValue(tensors).type(), tensors);
  read.define(
      "def forward(self, x):\n  for l in self.lists:\n    for n in l:\n      x = x * n\n"
      "  return x + self.tensors[0][1] * self.reals[0][1] + self.tensors[0][0]\n");
  const auto gm = from_torchscript(read);
  const torch::Tensor expected = read.forward({sample()}).toTensor();
  EXPECT_TRUE(torch::equal(gm->forward(sample()), expected));
  EXPECT_TRUE(torch::equal(testing::saved_and_loaded(*gm).forward({sample()}).toTensor(), expected));
}

// What the program holds as a constant is called `_tensor_constant0`; a scripted module of torch.fx has such names.
TEST(Constants, TakeNoNamesThatTheModelHas) {
  torch::jit::Module module = script();
  module.register_buffer("_tensor_constant0", torch::ones({4}));
  module.register_buffer("_tensor_constant2", torch::full({4}, 3.0));
  const auto graph = std::make_shared<torch::jit::Graph>();
  auto* self = graph->addInput("self")->setType(module.type());
  auto* x = graph->addInput("x");
  const auto add = [&](torch::jit::Value* a, torch::jit::Value* b) { return graph->insert(c10::aten::add, {a, b}); };
  auto* sum = add(x, graph->insertConstant(torch::full({4}, 10.0)));
  sum = add(sum, graph->insertGetAttr(self, "_tensor_constant0"));
  sum = add(sum, graph->insertConstant(torch::full({4}, 100.0)));
  sum = add(sum, graph->insertGetAttr(self, "_tensor_constant2"));
  graph->registerOutput(sum);
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), graph));
  const auto gm = from_torchscript(module);
  EXPECT_TRUE(torch::equal(gm->forward(torch::zeros({4})), torch::full({4}, 114.0))) << print_graph(gm->graph());
}

TEST(Constants, OfTheTwoModesOfALeafAreTwo) {
  torch::jit::Module leaf = script("__torch__.torch.nn.modules.mine.Leaf");
  const auto graph = std::make_shared<torch::jit::Graph>();
  auto* self = graph->addInput("self")->setType(leaf.type());
  auto* x = graph->addInput("x");
  auto* branch = graph->insertNode(graph->create(c10::prim::If, {graph->insertGetAttr(self, "training")}, 1));
  for (const double value : {10.0, 100.0}) {
    auto* block = branch->addBlock();
    const torch::jit::WithInsertPoint inside(block);
    block->registerOutput(graph->insert(c10::aten::add, {x, graph->insertConstant(torch::full({4}, value))}));
  }
  branch->output()->setType(c10::TensorType::get());
  graph->registerOutput(branch->output());
  leaf.type()->addMethod(
      leaf._ivalue()->compilation_unit()->create_function(c10::QualifiedName(*leaf.type()->name(), "forward"), graph));
  torch::jit::Module model(c10::QualifiedName("__torch__.mine.M"), leaf._ivalue()->compilation_unit(), true);
  model.register_attribute("training", c10::BoolType::get(), false);
  model.register_module("leaf", leaf);
  model.define("def forward(self, x):\n  return self.leaf.forward(x)\n");
  const auto gm = from_torchscript(model);
  EXPECT_TRUE(torch::equal(gm->forward(torch::zeros({4})), torch::full({4}, 100.0)));
  gm->train();
  EXPECT_TRUE(torch::equal(gm->forward(torch::zeros({4})), torch::full({4}, 10.0)));
}

// LibTorch's text of 1e10 is that of an int.
TEST(Numbers, FloatsComeBackAsFloats) {
  const double kValues[] = {1e9,
                            1e10,
                            -1e12,
                            12345678901.0,
                            9007199254740993.0,
                            1e16,
                            1e17,
                            1e20,
                            -0.0,
                            1e-20,
                            0.1,
                            -1.5e11,
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity()};
  for (const double value : kValues) {
    Graph graph;
    Node& x = graph.placeholder("x");
    Node& y = graph.call_function("aten::mul.Scalar", {x, value});
    Node& z = graph.call_function("aten::full", {Argument::list({2}), value});
    graph.output(
        Argument::tuple({Argument(y), Argument(z), Argument(value), Argument::list({Argument(value), Argument(2.5)}),
                         Argument::dict({Argument("k"), Argument(value)})}));
    GraphModule gm(std::move(graph));
    const torch::Tensor in = torch::tensor({1, 2});
    const auto expected = gm.run({in}).toTuple()->elements();
    const auto found = testing::saved_and_loaded(gm).forward({in}).toTuple()->elements();
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(found[i].toTensor().scalar_type(), expected[i].toTensor().scalar_type()) << value;
      EXPECT_TRUE(torch::equal(found[i].toTensor(), expected[i].toTensor())) << value;
    }
    ASSERT_TRUE(found[2].isDouble()) << value;
    EXPECT_EQ(found[2].toDouble(), value);
    EXPECT_EQ(std::signbit(found[2].toDouble()), std::signbit(value));
    EXPECT_EQ(found[3].toDoubleVector(), (std::vector<double>{value, 2.5}));
    EXPECT_EQ(found[4].toGenericDict().at("k").toDouble(), value);
    const auto again = from_torchscript(testing::saved_and_loaded(gm))->run({in}).toTuple()->elements();
    EXPECT_TRUE(again[2].isDouble());
    EXPECT_EQ(again[2].toDouble(), value);
  }
  const GraphModule with_default(
      parse_graph("graph():\n%x = placeholder[target=x]\n%k : float = placeholder[target=k](default=100000000000.0)\n"
                  "%y = call_function[target=aten::mul.Scalar](args = (%x, %k))\nreturn y"));
  EXPECT_THAT(testing::error_of([&] { to_torchscript(with_default); }), HasSubstr("the default 100000000000.0"));
}

TEST(Numbers, NoneStaysADefault) {
  GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n%b : Optional[Tensor] = placeholder[target=b](default=None)\n"
                  "%w = call_function[target=aten::ones](args = ([2, 4],))\n"
                  "%y = call_function[target=aten::linear](args = (%x, %w, %b))\nreturn y"));
  torch::jit::Module loaded = testing::saved_and_loaded(gm);
  EXPECT_TRUE(loaded.get_method("forward").function().getSchema().arguments()[2].default_value()->isNone());
  const torch::Tensor without = torch::linear(sample(), torch::ones({2, 4}));
  EXPECT_TRUE(torch::equal(loaded.forward({sample()}).toTensor(), without));
  EXPECT_TRUE(torch::equal(loaded.forward({sample(), torch::ones({2})}).toTensor(), without + 1));
  const auto again = from_torchscript(loaded);
  EXPECT_TRUE(torch::equal(again->run({sample()}).toTensor(), without));
  EXPECT_TRUE(torch::equal(again->run({sample(), torch::ones({2})}).toTensor(), without + 1));
}

/// An input without a type is of its default's, as without a default it is a tensor; one of None is optional.
TEST(Numbers, DefaultsOfInputsOutlastTheirTypes) {
  struct Case {
    const char *input, *use, *type;
  };
  for (const auto& [input, use, type] : std::initializer_list<Case>{
           {"%k = placeholder[target=k](default=3)", "aten::mul](args = (%x, %k))", "int"},
           {"%k = placeholder[target=k](default=2.5)", "aten::mul](args = (%x, %k))", "float"},
           {"%k = placeholder[target=k](default=True)", "aten::sum.dim_IntList](args = (%x, [1], %k))", "bool"},
           {"%k = placeholder[target=k](default=[1, 0])", "aten::permute](args = (%x, %k))", "List[int]"},
           {"%k = placeholder[target=k](default=None)", "aten::clamp.Tensor](args = (%x, %k, %x))", "Optional[Tensor]"},
           {"%k : torch.Tensor = placeholder[target=k](default=None)", "aten::clamp.Tensor](args = (%x, %k, %x))",
            "Optional[Tensor]"},
           {"%k : float = placeholder[target=k](default=None)", "aten::clamp](args = (%x, %k, 2.0))",
            "Optional[float]"}}) {
    const GraphModule gm(parse_graph(std::string("graph():\n%x = placeholder[target=x]\n") + input +
                                     "\n%y = call_function[target=" + use + "\nreturn y"));
    torch::jit::Module loaded = testing::saved_and_loaded(gm);
    const torch::Tensor wanted = gm.clone_graph_module()->run({sample()}).toTensor();
    EXPECT_EQ(loaded.get_method("forward").function().getSchema().arguments()[2].type()->annotation_str(), type);
    EXPECT_TRUE(torch::equal(loaded.forward({sample()}).toTensor(), wanted)) << input;
    EXPECT_TRUE(torch::equal(from_torchscript(loaded)->run({sample()}).toTensor(), wanted)) << input;
  }
  const GraphModule of_a_tensor(
      parse_graph("graph():\n%x = placeholder[target=x]\n%k : Tensor = placeholder[target=k](default=3)\n"
                  "%y = call_function[target=aten::mul](args = (%x, %k))\nreturn y"));
  EXPECT_THAT(
      testing::error_of([&] { to_torchscript(of_a_tensor); }),
      HasSubstr("cannot say the default 3 of the input 'k': it is no Tensor; give the input the default's type"));
}

/// A size where a float is wanted.
TEST(Numbers, WholeOnesAreFloatsWhereTheseAreWanted) {
  for (const char* call : {"aten::div.float](args = (1.0, %n))", "operator.truediv](args = (1.0, %n))",
                           "aten::pow.float](args = (2.5, %n))", "aten::sub.float](args = (%n, 0.5))"}) {
    const GraphModule gm(parse_graph(
        std::string("graph():\n%x = placeholder[target=x]\n%n = call_function[target=aten::size.int](args = (%x, 0))\n"
                    "%d = call_function[target=") +
        call + "\n%y = call_function[target=aten::mul](args = (%x, %d))\nreturn (y, d)"));
    const auto wanted = gm.clone_graph_module()->run({sample()}).toTuple()->elements();
    const auto got = testing::saved_and_loaded(gm).forward({sample()}).toTuple()->elements();
    EXPECT_TRUE(torch::equal(got[0].toTensor(), wanted[0].toTensor())) << call;
    EXPECT_EQ(got[1].toDouble(), wanted[1].toDouble()) << call;
  }
}

/// A bool where one overload takes a number and another a tensor, which would have to be of one type with the first.
TEST(Numbers, BoolsAreNumbersWhereATensorWouldNotDo) {
  for (const char* call : {"torch.scatter](args = (%x, 1, %i, True))", "torch.scatter_](args = (%x, -2, %i, True))",
                           "torch.index_fill](args = (%x, 0, %j, True))", "torch.masked_fill](args = (%x, %m, True))",
                           "torch.eq](args = (%x, True))", "torch.mul](args = (%m, True))"}) {
    const GraphModule gm(parse_graph(
        std::string("graph():\n%x = placeholder[target=x]\n"
                    "%i = call_function[target=aten::ones_like](args = (%x,), kwargs = {dtype: torch.int64})\n"
                    "%j = call_function[target=aten::select.int](args = (%i, 0, 0))\n"
                    "%m = call_function[target=aten::gt.Scalar](args = (%x, 0))\n"
                    "%y = call_function[target=") +
        call + "\nreturn y"));
    const torch::Tensor wanted = gm.clone_graph_module()->run({sample()}).toTensor();
    const torch::Tensor got = testing::saved_and_loaded(gm).forward({sample()}).toTensor();
    EXPECT_TRUE(torch::equal(got, wanted)) << call;
    EXPECT_EQ(got.scalar_type(), wanted.scalar_type()) << call;
  }
}

// What Python gives for x of ones, whose size(0) is 2: run, and as TorchScript or refused there.
TEST(Numbers, BoolsAreIntsToPythonsOperators) {
  struct Row {
    const char* call;
    c10::IValue wanted;
  };
  const Row rows[] = {{"operator.eq](args = (%c, 1))", true},         {"operator.ne](args = (%c, 1))", false},
                      {"operator.add](args = (%c, %c))", 2},          {"operator.mul](args = (%c, 2.5))", 2.5},
                      {"operator.sub](args = (%n, %c))", 1},          {"operator.neg](args = (%c,))", -1},
                      {"operator.lt](args = (%c, %n))", true},        {"operator.floordiv](args = (%n, %c))", 2},
                      {"operator.floordiv](args = (1.0, 0.1))", 9.0}, {"operator.invert](args = (%c,))", -2},
                      {"operator.pow](args = (%n, %c))", 2},          {"operator.truediv](args = (%c, %n))", 0.5}};
  for (const Row& row : rows) {
    GraphModule gm(
        parse_graph(std::string("graph():\n%x = placeholder[target=x]\n%n = call_method[target=size](args = (%x, "
                                "0))\n%c = call_function[target=operator.eq](args = (%n, 2))\n%y = "
                                "call_function[target=") +
                    row.call + "\nreturn y"));
    const torch::Tensor x = torch::ones({2, 3});
    EXPECT_EQ(gm.run({x}), row.wanted) << row.call;
    try {
      EXPECT_EQ(testing::saved_and_loaded(gm).forward({x}), row.wanted) << row.call;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    }
  }
}

TEST(Numbers, PowersOfIntsAreInts) {
  for (const char* exponent : {"0", "1", "2", "5", "39", "-1", "-2"}) {
    GraphModule gm(
        parse_graph(std::string("graph():\n%x = placeholder[target=x]\n%n = call_method[target=size](args = (%x, 0))\n"
                                "%p = call_function[target=operator.pow](args = (%n, ") +
                    exponent + "))\n%y = call_function[target=operator.mul](args = (%x, %p))\nreturn (y, p)"));
    const torch::Tensor x = torch::arange(12).view({3, 4});
    const auto expected = gm.run({x}).toTuple()->elements();
    const auto found = testing::saved_and_loaded(gm).forward({x}).toTuple()->elements();
    EXPECT_TRUE(torch::equal(found[0].toTensor(), expected[0].toTensor())) << exponent;
    EXPECT_EQ(found[1].tagKind(), expected[1].tagKind()) << exponent;
    EXPECT_EQ(found[1], expected[1]) << exponent;
  }
  GraphModule explicitly(
      parse_graph("graph():\n%x = placeholder[target=x]\n%n = call_method[target=size](args = (%x, 0))\n"
                  "%p = call_function[target=aten::pow.int_to_int](args = (%n, %n))\nreturn p"));
  EXPECT_EQ(testing::saved_and_loaded(explicitly).forward({sample()}), c10::IValue(27));
  const GraphModule unknown(
      parse_graph("graph():\n%x = placeholder[target=x]\n%n = call_method[target=size](args = (%x, 0))\n"
                  "%p = call_function[target=operator.pow](args = (2, %n))\nreturn p"));
  EXPECT_THAT(testing::error_of([&] { to_torchscript(unknown); }), HasSubstr("one type for a power"));
}

TEST(Numbers, WhatIsComputedOfNumbersIsANumber) {
  GraphModule gm(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%n = call_method[target=size](args = (%x, 0))\n"
      "%a = call_function[target=operator.floordiv](args = (7, %n))\n%b = call_function[target=operator.mod](args = "
      "(7, "
      "%n))\n%c = call_function[target=operator.gt](args = (%n, 2))\n%d = call_function[target=operator.lt](args = "
      "(%n, "
      "9))\n%e = call_function[target=operator.and_](args = (%c, %d))\n%f = call_function[target=operator.or_](args = "
      "(%c, %d))\n%g = call_function[target=operator.ifloordiv](args = (%n, -2))\n"
      "%h = call_function[target=operator.abs](args = (%g,))\nreturn (x, a, b, e, f, g, h)"));
  const auto expected = gm.run({sample()}).toTuple()->elements();
  const auto found = testing::saved_and_loaded(gm).forward({sample()}).toTuple()->elements();
  for (std::size_t i = 1; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].tagKind(), expected[i].tagKind()) << i;
    EXPECT_EQ(found[i], expected[i]) << i;
  }
}

TEST(Methods, ThatTakeTheTensorElsewhereAreSavedAsTheyRun) {
  GraphModule gm(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%c = call_function[target=operator.lt](args = (%x, 3))\n"
      "%z = call_function[target=torch.neg](args = (%x,))\n%y = call_method[target=where](args = (%x, %c, %z))\n"
      "%n = call_method[target=where](args = (%x,), kwargs = {condition: %c, other: 2.0})\n"
      "%p = call_method[target=polygamma](args = (%n, 1))\nreturn (y, n, p)"));
  const torch::Tensor x = sample().abs() + 0.5;
  const auto expected = gm.run({x}).toTuple()->elements();
  const auto found = testing::saved_and_loaded(gm).forward({x}).toTuple()->elements();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(found[i].toTensor(), expected[i].toTensor())) << i;
}

// torch.ao.nn's modules keep their weights packed, one level below.
TEST(Leaves, KeepThePackedWeightsThatTheyRead) {
  const auto unit = std::make_shared<torch::jit::CompilationUnit>();
  const torch::Tensor weight = torch::quantize_per_tensor(torch::randn({2, 4}), 0.1, 0, torch::kQInt8);
  const c10::OperatorHandle pack = c10::Dispatcher::singleton().findSchemaOrThrow("quantized::linear_prepack", "");
  torch::jit::Stack stack{weight, torch::ones({2})};
  pack.callBoxed(&stack);
  torch::jit::Module params(c10::QualifiedName("__torch__.torch.ao.nn.quantized.modules.linear.LinearPackedParams"),
                            unit, true);
  params.register_attribute("training", c10::BoolType::get(), false);
  params.register_attribute("_packed_params", stack[0].type(), stack[0]);
  torch::jit::Module linear(c10::QualifiedName("__torch__.torch.ao.nn.quantized.modules.linear.Linear"), unit, true);
  linear.register_attribute("training", c10::BoolType::get(), false);
  linear.register_attribute("scale", c10::FloatType::get(), 0.25);
  linear.register_attribute("zero_point", c10::IntType::get(), 3);
  linear.register_module("_packed_params", params);
  const auto graph = std::make_shared<torch::jit::Graph>();
  auto* self = graph->addInput("self")->setType(linear.type());
  auto* x = graph->addInput("x");
  auto* held = graph->insertGetAttr(graph->insertGetAttr(self, "_packed_params"), "_packed_params");
  graph->registerOutput(
      graph->insert(c10::Symbol::fromQualString("quantized::linear"),
                    {x, held, graph->insertGetAttr(self, "scale"), graph->insertGetAttr(self, "zero_point")}));
  linear.type()->addMethod(unit->create_function(c10::QualifiedName(*linear.type()->name(), "forward"), graph));
  torch::jit::Module model(c10::QualifiedName("__torch__.mine.M"), unit, true);
  model.register_attribute("training", c10::BoolType::get(), false);
  model.register_module("fc", linear);
  model.define(
      "def forward(self, x):\n  q = torch.quantize_per_tensor(x, 0.1, 0, 13)\n  return "
      "torch.dequantize(self.fc.forward(q))\n");
  const torch::Tensor expected = model.forward({sample()}).toTensor();
  const auto gm = from_torchscript(model);
  EXPECT_TRUE(torch::equal(gm->forward(sample()), expected));
  EXPECT_TRUE(torch::equal(Interpreter(*gm).run({sample()}).toTensor(), expected));
  const auto copy = std::dynamic_pointer_cast<GraphModule>(gm->clone());
  EXPECT_TRUE(torch::equal(copy->forward(sample()), expected));
  torch::jit::Module again = testing::saved_and_loaded(*gm);
  EXPECT_TRUE(torch::equal(again.forward({sample()}).toTensor(), expected));
  EXPECT_TRUE(torch::equal(from_torchscript(again)->forward(sample()), expected));
}

}  // namespace fx::wrong_results_test
