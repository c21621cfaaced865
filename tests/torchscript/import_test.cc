// What the importer makes of pieces of TorchScript, written here as text.
#include <fxgraph/torchscript/import.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/export.h>
#include "tests/support/error_of.h"

namespace fx::import_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

torch::Tensor sample() { return torch::arange(12, torch::kFloat).view({3, 4}) - 5; }

torch::jit::Module module_of(const std::string& code, const std::string& name = "__torch__.mine.M") {
  torch::jit::Module module(c10::QualifiedName(name), std::make_shared<torch::jit::CompilationUnit>(), true);
  module.register_attribute("training", c10::BoolType::get(), false);
  if (!code.empty()) module.define(code);
  return module;
}

std::string error_of(const torch::jit::Module& module, const LoadOptions& options = {}) {
  return testing::one_line_error_of([&] { from_torchscript(module, options); });
}

TEST(Import, KeepsWhatTheProgramDoesNotRead) {
  torch::jit::Module module = module_of("");
  torch::jit::Module part(c10::QualifiedName("__torch__.mine.Part"), module._ivalue()->compilation_unit(), true);
  part.register_parameter("scale", sample(), false);
  part.register_buffer("seen", sample().to(at::kLong));
  module.register_module("part", part);
  module.register_parameter("spare", sample(), false);
  module.define("def forward(self, x):\n  return x + 1\n");
  const auto gm = from_torchscript(module);
  EXPECT_EQ(gm->named_parameters().size(), 2u);
  EXPECT_TRUE(gm->find_attribute("part.scale").equal(sample()));
  EXPECT_TRUE(gm->find_attribute("spare").equal(sample()));
  EXPECT_EQ(gm->find_attribute("part.seen").scalar_type(), at::kLong);
  EXPECT_TRUE(from_torchscript(to_torchscript(*gm))->find_attribute("part.scale").equal(sample()));
}

struct Case {
  const char* name;
  const char* code;
  int nodes;  ///< of the graph: what is decided leaves none
};

// Each is imported and must compute what TorchScript computes.
const Case kCases[] = {
    {"plain", "def forward(self, x):\n  return torch.add(torch.relu(x), x, alpha=2)\n", 4},
    {"constant_if",
     "def forward(self, x):\n  n = 3\n  if n > 2:\n    x = x.relu()\n  else:\n    x = x.neg()\n  return x\n", 3},
    {"unrolled_loop", "def forward(self, x):\n  for i in range(3):\n    x = x * i + 1\n  return x\n", 8},
    {"loop_with_break",
     "def forward(self, x):\n  for i in range(10):\n    if i == 2:\n      break\n    x = x + 1\n  return x\n", 4},
    {"while_on_constants",
     "def forward(self, x):\n  n = 8\n  while n > 1:\n    x = x + n\n    n = n // 2\n  return x\n", 5},
    {"list_is_shared",
     "def grow(self, l: List[Tensor], x) -> int:\n  l.append(x + len(l))\n  return len(l)\n"
     "def forward(self, x):\n  l = [x]\n  m = l\n  n = self.grow(l, x)\n  a = torch.cat(m, 0)\n  n = self.grow(m, x)\n "
     " return torch.cat(l, 0) * n, a\n",
     7},
    {"list_copy_is_not",
     "def forward(self, x):\n  l = [x, x + 1]\n  m = l[:]\n  m.append(x)\n  l[0] = x + 2\n  return torch.cat(l, 0), "
     "torch.cat(m, 0)\n",
     6},
    {"list_edits",
     "def forward(self, x):\n  l = [x, x + 1, x + 2]\n  l.insert(1, x + 3)\n  y = l.pop()\n  l.reverse()\n  l += [y]\n "
     " l.extend([x])\n  return torch.cat(l + [x], 1)\n",
     6},
    {"tuples", "def forward(self, x):\n  t = (x, (x + 1, 2))\n  a, (b, n) = t\n  return t[1][0] * n + a - b\n", 6},
    {"dicts",
     "def forward(self, x):\n  d = {\"a\": x}\n  d[\"b\"] = x + 1\n  d[\"a\"] = d[\"a\"] * 2\n  out = x\n  for k in "
     "d.keys():\n    out = out + d[k]\n  if \"c\" in d:\n    out = out * 100\n  return out\n",
     6},
    {"dict_updated",
     "def forward(self, x):\n  d = {\"a\": x}\n  d.update({\"b\": x * 3, \"a\": x + 1})\n  return d[\"a\"] * "
     "d[\"b\"]\n",
     5},
    {"none",
     "def pick(self, x, y: Optional[Tensor]):\n  if y is not None:\n    return x + y\n  return x\n"
     "def forward(self, x):\n  return self.pick(x, None) * self.pick(x, x)\n",
     4},
    {"functional", "def forward(self, x):\n  return torch.dropout(torch.softmax(x, 1), 0.5, False)\n", 4},
    {"several_results", "def forward(self, x):\n  v, i = torch.topk(x, 2)\n  return v * i\n", 6},
    {"list_result",
     "def forward(self, x):\n  a, b = torch.chunk(x, 2, 1)\n  c = torch.split(x, 2, 1)\n  return a * b + c[1]\n", 9},
    {"shapes", "def forward(self, x):\n  b = x.size(0)\n  return x.view(b * 2, -1) / b\n", 6},
    {"dead_code", "def forward(self, x):\n  y = x.exp()\n  n = x.size(0)\n  return x\n", 2},
    {"in_place", "def forward(self, x):\n  y = x.clone()\n  y.add_(1)\n  y[0] = 5\n  return y\n", 9},
    {"assert_kept", "def forward(self, x):\n  assert x.dim() == 2, \"rank\"\n  return x.relu()\n", 6},
    {"negated_assert", "def forward(self, x):\n  assert not (x.dim() != 2), \"rank\"\n  return x.relu()\n", 7},
    {"either_assert",
     "def forward(self, x):\n  assert x.dim() == 2 or x.dim() == 3, \"rank\"\n  assert x.dim() == 2 and x.numel() > "
     "0\n  return x\n",
     -1},
    {"assert_sizes",
     "def forward(self, x):\n  assert x.size(0) > 0 and x.size()[1] == 4 and x.dim() == 2, \"sizes\"\n"
     "  assert not (x.size(0) == 77 or x.size(1) == 5), \"sizes\"\n  return x.relu()\n",
     -1},
    {"list_slices",
     "def forward(self, x):\n  l = [x, x + 1, x + 2, x + 3]\n"
     "  return torch.stack(l[::-1] + l[1:] + l[-2:0:-1] + l[:1:-2] + l[9:-9:-3] + l[::3])\n",
     -1},
    {"strings",
     "def forward(self, x):\n  mode = \"a\" + \"b\"\n  if mode == \"ab\" and len(mode) == 2:\n    x = x + 1\n  return "
     "x\n",
     3},
    {"dtypes", "def forward(self, x):\n  return x.to(7).sum(dtype=6)\n", 4},
    {"early_returns",
     "def forward(self, x):\n  n = 2\n  if n > 1:\n    if n > 2:\n      return x.abs()\n    return x.exp()\n  return "
     "x.tanh()\n",
     3},
    {"list_multiplied", "def forward(self, x):\n  s = [1] * 2 + [-1]\n  return x.view(s)\n", 3},
    {"loop_over_list", "def forward(self, x):\n  for f in [1.0, 2.0]:\n    x = x * f\n  return x\n", 4},
};

class ImportCases : public ::testing::TestWithParam<Case> {};

void expect_equal(const c10::IValue& got, const c10::IValue& expected) {
  if (expected.isTuple()) {
    for (std::size_t i = 0; i < expected.toTuple()->elements().size(); ++i) {
      expect_equal(got.toTuple()->elements().at(i), expected.toTuple()->elements()[i]);
    }
  } else {
    EXPECT_TRUE(got.toTensor().equal(expected.toTensor())) << got << "\n" << expected;
  }
}

TEST_P(ImportCases, ComputesWhatTorchScriptComputes) {
  torch::jit::Module module = module_of(GetParam().code);
  const auto gm = from_torchscript(module);
  gm->graph().lint();
  if (GetParam().nodes >= 0) {
    EXPECT_EQ(gm->graph().size(), static_cast<std::size_t>(GetParam().nodes)) << print_graph(gm->graph());
  }
  expect_equal(gm->run({sample()}), module.forward({sample()}));
}

INSTANTIATE_TEST_SUITE_P(All, ImportCases, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Import, WritesOperatorsAsFxDoes) {
  const auto gm = from_torchscript(
      module_of("def forward(self, x):\n  y = torch.add(x, 1)\n  return torch.sum(y, [0], dtype=7)\n"));
  EXPECT_EQ(print_graph(gm->graph()),
            "graph():\n"
            "    %x : [num_users=1] = placeholder[target=x]\n"
            "    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Scalar](args = (%x, 1), kwargs = {})\n"
            "    %sum_1 : [num_users=1] = call_function[target=torch.ops.aten.sum.dim_IntList](args = (%add, [0]), "
            "kwargs = {dtype: torch.float64})\n"
            "    return sum_1\n");
}

TEST(Import, AssertionsSayTheirMessage) {
  const auto gm = from_torchscript(module_of(
      "def forward(self, x):\n  assert x.dim() == 3, \"expected rank 3, got {}\".format(x.dim())\n  return x\n"));
  EXPECT_THAT(print_graph(gm->graph()),
              AllOf(HasSubstr("target=torch._assert](args = (%eq, 'expected rank 3, got {x.dim()}')"),
                    Not(HasSubstr("__not__"))));
  EXPECT_THAT([&] { gm->forward(sample()); }, ::testing::ThrowsMessage<Error>(HasSubstr("expected rank 3")));
}

TEST(Import, RefusesWhatOnlyDataDecidesAndShowsTheLine) {
  EXPECT_THAT(error_of(module_of("def forward(self, x):\n  if bool(x.sum() > 0):\n    return x.relu()\n  return x\n")),
              AllOf(HasSubstr("depends on the input's data"), HasSubstr("`if bool(x.sum() > 0):`")));
  EXPECT_THAT(error_of(module_of("def forward(self, x):\n  for i in range(x.size(0)):\n    x = x + 1\n  return x\n")),
              AllOf(HasSubstr("a loop whose number of rounds"), HasSubstr("`for i in range(x.size(0)):`")));
  EXPECT_THAT(error_of(module_of("def forward(self, x):\n  while bool(x.max() > 1):\n    x = x / 2\n  return x\n")),
              HasSubstr("`while bool(x.max() > 1):`"));
  EXPECT_THAT(error_of(module_of("def forward(self, x):\n  assert 1 > 2, \"never\"\n  return x\n")),
              HasSubstr("always raises"));
}

TEST(Import, BoundsUnrolling) {
  LoadOptions options;
  options.max_unrolled_rounds = 10;
  EXPECT_THAT(error_of(module_of("def forward(self, x):\n  for i in range(11):\n    x = x + 1\n  return x\n"), options),
              HasSubstr("raise LoadOptions::max_unrolled_rounds"));
}

TEST(Import, OptionalInputsCanBeFixed) {
  const torch::jit::Module module = module_of(
      "def forward(self, x, mask: Optional[Tensor]=None, k: float=2.0):\n"
      "  if mask is not None:\n    x = x * mask\n  return x * k\n");
  EXPECT_THAT(error_of(module), HasSubstr("LoadOptions::concrete_inputs"));
  LoadOptions options;
  options.concrete_inputs["mask"] = c10::IValue();
  const auto gm = from_torchscript(module, options);
  EXPECT_EQ(gm->graph().placeholders().size(), 2u);
  EXPECT_TRUE(gm->forward(sample()).equal(sample() * 2));
  EXPECT_TRUE(gm->forward(sample(), 3.0).equal(sample() * 3));
}

TEST(Import, InputsOfOtherTypesAreAnnotated) {
  const auto gm = from_torchscript(module_of(
      "def forward(self, xs: List[Tensor], d: Dict[str, Tensor], n: int):\n  return torch.cat(xs, n) + d[\"a\"]\n"));
  EXPECT_THAT(print_graph(gm->graph()), HasSubstr("%xs : List[Tensor]"));
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("a", torch::ones({1}));
  EXPECT_TRUE(gm->run({c10::List<at::Tensor>({sample(), sample()}), dict, 1})
                  .toTensor()
                  .equal(torch::cat({sample(), sample()}, 1) + 1));
}

// What only raises may be computed early: the program would have raised, too. What decides a value may not.
TEST(Import, ConditionsThatMayFailAreNotComputedEarly) {
  EXPECT_THAT(error_of(module_of("def forward(self, x):\n  if x.dim() == 3 and x.size(2) == 4:\n    return x.relu()\n"
                                 "  return x\n")),
              HasSubstr("x.size(2) == 4"));
  EXPECT_THAT(error_of(module_of("def forward(self, x):\n  assert x.dim() == 2 or x.size(2) == 4\n  return x\n")),
              HasSubstr("x.size(2) == 4"));
}

// ── Modules ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A parent with children; `define` is its own code.
torch::jit::Module parent_of(const std::vector<std::pair<std::string, torch::jit::Module>>& children,
                             const std::string& code) {
  torch::jit::Module parent = module_of("");
  for (const auto& [name, child] : children) parent.register_module(name, child);
  parent.define(code);
  return parent;
}

torch::jit::Module linear_leaf() {
  torch::jit::Module leaf = module_of("", "__torch__.torch.nn.modules.linear.Linear");
  leaf.register_parameter("weight", torch::randn({4, 4}), false);
  leaf.register_parameter("bias", torch::randn({4}), false);
  leaf.define("def forward(self, input):\n  return torch.linear(input, self.weight, self.bias)\n");
  return leaf;
}

torch::jit::Module dropout_leaf() {
  torch::jit::Module leaf = module_of("", "__torch__.torch.nn.modules.dropout.Dropout");
  leaf.define("def forward(self, input):\n  return torch.dropout(input, 0.5, self.training)\n");
  return leaf;
}

/// A leaf whose forward branches on data.
torch::jit::Module branching_leaf() {
  torch::jit::Module leaf = module_of("", "__torch__.torch.nn.modules.odd.Odd");
  leaf.register_parameter("gain", torch::full({1}, 3.0), false);
  leaf.define(
      "def forward(self, input):\n  if bool(input.sum() > 0):\n    return input * self.gain\n"
      "  if self.training:\n    return input * 0\n  return input\n");
  return leaf;
}

TEST(ImportModules, TorchNnStaysACallAndTheRestIsInlined) {
  torch::jit::Module own = module_of("");
  own.register_buffer("shift", torch::ones({4}));
  own.define("def forward(self, x):\n  return x + self.shift\n");
  torch::jit::Module model = parent_of({{"fc", linear_leaf()}, {"own", own}},
                                       "def forward(self, x):\n  return self.own.forward(self.fc.forward(x)).relu()\n");
  const auto gm = from_torchscript(model);
  EXPECT_EQ(gm->graph().count(Op::call_module, "fc"), 1u);
  EXPECT_EQ(gm->graph().count(Op::get_attr, "own.shift"), 1u);
  EXPECT_EQ(gm->module_type("fc"), "Linear");
  EXPECT_EQ(*gm->graph().find("add")->find_meta()->get<std::string>(meta_key::kModuleStack), "own");
  EXPECT_TRUE(gm->attribute("fc.weight").is_same(model.attr("fc").toModule().attr("weight").toTensor()));
  EXPECT_TRUE(gm->is_parameter("fc.weight"));
  EXPECT_FALSE(gm->is_parameter("own.shift"));
  EXPECT_TRUE(gm->forward(sample()).equal(model.forward({sample()}).toTensor()));
}

TEST(ImportModules, ThePredicateDecidesWhatStays) {
  torch::jit::Module model = parent_of({{"fc", linear_leaf()}}, "def forward(self, x):\n  return self.fc.forward(x)\n");
  LoadOptions options;
  options.is_leaf = [](const std::string& name, const std::string& path) {
    EXPECT_EQ(name, "torch.nn.modules.linear.Linear");
    EXPECT_EQ(path, "fc");
    return false;
  };
  const auto gm = from_torchscript(model, options);
  EXPECT_EQ(gm->graph().count(Op::call_function, "aten::linear"), 1u);
  EXPECT_EQ(gm->graph().count(Op::get_attr, "fc.weight"), 1u);
  EXPECT_TRUE(is_torch_nn_leaf("torch.nn.modules.conv.Conv2d"));
  EXPECT_FALSE(is_torch_nn_leaf("torch.nn.modules.container.Sequential"));
  EXPECT_FALSE(is_torch_nn_leaf("mine.torch.nn.modules.conv.Conv2d"));
}

TEST(ImportModules, LeavesKeepBothModes) {
  torch::jit::Module model =
      parent_of({{"drop", dropout_leaf()}}, "def forward(self, x):\n  return self.drop.forward(x)\n");
  const auto gm = from_torchscript(model);
  EXPECT_FALSE(gm->is_training());
  EXPECT_TRUE(gm->forward(sample()).equal(sample()));
  gm->train();
  EXPECT_FALSE(gm->forward(torch::ones({100})).equal(torch::ones({100})));
  gm->eval();
  EXPECT_TRUE(gm->forward(sample()).equal(sample()));
}

TEST(ImportModules, LeavesThatBranchOnDataRunAsTorchScript) {
  torch::jit::Module model =
      parent_of({{"odd", branching_leaf()}}, "def forward(self, x):\n  return self.odd.forward(x) + 1\n");
  const auto gm = from_torchscript(model);
  EXPECT_EQ(gm->leaf("odd")->body(), nullptr);
  for (const torch::Tensor& x : {sample(), sample().abs()}) {
    EXPECT_TRUE(gm->forward(x).equal(model.forward({x}).toTensor()));
  }
  gm->train();
  EXPECT_TRUE(gm->forward(sample() - 100).equal(torch::ones({3, 4})));
  EXPECT_FALSE(model.attr("odd").toModule().is_training()) << "the model imported is left alone";
  gm->attribute("odd.gain").data().fill_(5);
  EXPECT_TRUE(gm->forward(torch::ones({1})).equal(torch::full({1}, 6.0))) << "tensors are shared";
  const auto copy = gm->clone_graph_module();
  copy->attribute("odd.gain").data().fill_(7);
  EXPECT_TRUE(copy->forward(torch::ones({1})).equal(torch::full({1}, 8.0)));
  EXPECT_TRUE(gm->forward(torch::ones({1})).equal(torch::full({1}, 6.0)));
}

TEST(ImportModules, ASecondMethodThatDiffersIsInlined) {
  torch::jit::Module leaf = linear_leaf();
  leaf.define(
      "def forward1(self, input):\n  return torch.linear(input, self.weight, self.bias)\n"
      "def forward2(self, input):\n  return torch.linear(input, self.weight)\n");
  torch::jit::Module model = parent_of(
      {{"fc", leaf}}, "def forward(self, x):\n  return self.fc.forward2(self.fc.forward1(self.fc.forward(x)))\n");
  const auto gm = from_torchscript(model);
  EXPECT_EQ(gm->graph().count(Op::call_module, "fc"), 2u) << "forward1 does what forward does";
  EXPECT_EQ(gm->graph().count(Op::call_function, "aten::linear"), 1u);
  EXPECT_TRUE(gm->forward(sample()).equal(model.forward({sample()}).toTensor()));
}

TEST(ImportModules, OneModuleUnderTwoNamesHasOnePath) {
  const torch::jit::Module leaf = linear_leaf();
  torch::jit::Module model =
      parent_of({{"a", leaf}, {"b", leaf}}, "def forward(self, x):\n  return self.b.forward(self.a.forward(x))\n");
  const auto gm = from_torchscript(model);
  EXPECT_EQ(gm->parameters().size(), 2u);
  EXPECT_TRUE(gm->forward(sample()).equal(model.forward({sample()}).toTensor()));
}

TEST(ImportModules, StateIsWrittenInPlaceOrRefused) {
  torch::jit::Module counter = module_of("");
  counter.register_buffer("calls", torch::zeros({1}));
  counter.register_attribute("count", c10::IntType::get(), 0);
  counter.define("def forward(self, x):\n  self.calls += 1\n  return x * self.calls\n");
  const auto gm = from_torchscript(counter);
  gm->forward(sample());
  EXPECT_TRUE(gm->forward(sample()).equal(sample() * 2));
  counter.define("def other(self, x):\n  return x\n");
  torch::jit::Module number = module_of("");
  number.register_attribute("count", c10::IntType::get(), 0);
  number.define("def forward(self, x):\n  self.count = self.count + 1\n  return x\n");
  EXPECT_THAT(error_of(number), HasSubstr("setting attribute 'count'"));
}

TEST(ImportModules, ListAttributesMayBeReadAndNotWritten) {
  torch::jit::Module model = module_of("");
  model.register_attribute("sizes", c10::ListType::ofInts(), c10::List<std::int64_t>({4, 3}));
  model.register_attribute("anchors", c10::ListType::ofTensors(),
                           c10::List<at::Tensor>({torch::ones({1}), torch::full({1}, 2.0)}));
  model.define("def forward(self, x):\n  return x.view(self.sizes) * self.anchors[1]\n");
  const auto gm = from_torchscript(model);
  EXPECT_EQ(gm->graph().count(Op::get_attr, "anchors.1"), 1u);
  EXPECT_TRUE(gm->forward(sample()).equal(model.forward({sample()}).toTensor()));
  torch::jit::Module writer = module_of("");
  writer.register_attribute("sizes", c10::ListType::ofInts(), c10::List<std::int64_t>({4, 3}));
  writer.define("def forward(self, x):\n  self.sizes.append(1)\n  return x.view(self.sizes)\n");
  EXPECT_THAT(error_of(writer), HasSubstr("would outlive the call"));
}

TEST(ImportModules, AModelNeedsAForward) {
  EXPECT_THAT(error_of(module_of("def predict(self, x):\n  return x\n")), HasSubstr("no forward method"));
}

TEST(ImportModules, TensorConstantsBecomeBuffers) {
  torch::jit::Module traced = torch::jit::Module("M");
  auto graph = std::make_shared<torch::jit::Graph>();
  auto* self = graph->addInput("self")->setType(traced.type());
  auto* x = graph->addInput("x");
  auto* two = graph->insertConstant(torch::full({1}, 2.0));
  graph->registerOutput(graph->insert(c10::aten::mul, {graph->insert(c10::aten::mul, {x, two}), two}));
  static_cast<void>(self);
  auto* method = traced._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*traced.type()->name(), "forward"), graph);
  traced.type()->addMethod(method);
  const auto gm = from_torchscript(traced);
  EXPECT_EQ(gm->buffers().size(), 1u);
  EXPECT_TRUE(gm->find_attribute("_tensor_constant0").defined());
  EXPECT_TRUE(gm->forward(sample()).equal(sample() * 4));
}

}  // namespace fx::import_test
