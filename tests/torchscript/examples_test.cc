// Files whose control flow hangs on their inputs, read at examples: equal to the file there, and at other inputs equal
// or refused by an assertion.
#include <fxgraph/torchscript/import.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <fxgraph/ir/graph.h>
#include <fxgraph/support/error.h>
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"
#include "tests/torchscript/module_of_code.h"

namespace fx::examples_test {

using c10::IValue;
using ::testing::HasSubstr;
using testing::module_of;
using testing::ones;
using Inputs = std::vector<IValue>;

struct Case {
  const char* name;
  const char* code;
  Inputs example;
  std::vector<Inputs> equal;    ///< the graph gives what the file gives
  std::vector<Inputs> refused;  ///< an assertion says that it was read for others
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

IValue list_of(std::vector<torch::Tensor> tensors) { return IValue(c10::List<torch::Tensor>(tensors)); }
IValue dict_of(const std::vector<std::pair<std::string, torch::Tensor>>& items) {
  c10::Dict<std::string, torch::Tensor> dict;
  for (const auto& [key, value] : items) dict.insert(key, value);
  return dict;
}
const torch::Tensor kA = torch::ones({2, 3}), kB = torch::full({2, 3}, 2.0f);

const Case kCases[] = {
    {"branch_on_rank",
     "def forward(self, x):\n  if x.dim() == 3:\n    x = x.mean(0)\n  return x.relu()\n",
     {ones({2, 3, 4})},
     {{ones({5, 1, 4})}},
     {{ones({3, 4})}, {ones({1, 2, 3, 4})}}},
    {"loop_on_size",
     "def forward(self, x):\n  y = x[0]\n  for i in range(1, x.size(0)):\n    y = torch.tanh(y) + x[i] * i\n  return "
     "y\n",
     {ones({4, 3})},
     {{ones({4, 5})}},
     {{ones({3, 3})}, {ones({5, 3})}}},
    {"while_on_size",
     "def forward(self, x):\n  n = x.size(1)\n  while n > 4:\n    x = (x[:, ::2] + 1)\n    n = x.size(1)\n  return x\n",
     {ones({2, 16})},
     {{ones({3, 16})}, {ones({2, 15})}},
     {{ones({2, 3})}, {ones({2, 40})}}},
    {"window_padding",
     "def forward(self, x):\n  h = x.size(2)\n  pad = (4 - h % 4) % 4\n  if pad > 0:\n    x = torch.constant_pad_nd(x, "
     "[0, 0, 0, "
     "pad], 0.)\n  return x.view(x.size(0), x.size(1), -1, 4, x.size(3)).sum(3)\n",
     {ones({1, 2, 7, 4})},
     {{ones({1, 2, 7, 8})}, {ones({2, 3, 5, 4})}},
     {{ones({1, 2, 8, 4})}}},
    {"early_return",
     "def forward(self, x):\n  if x.size(0) == 1:\n    return x\n  if x.size(1) > 2:\n    return x.exp()\n  return "
     "x.abs()\n",
     {ones({2, 3})},
     {{ones({5, 9})}},
     {{ones({1, 3})}, {ones({2, 2})}}},
    {"optional_given",
     "def forward(self, x, mask: Optional[Tensor]=None):\n  if mask is not None:\n    x = x * mask\n  return x + 1\n",
     {ones({2, 3}), ones({2, 3})},
     {{ones({4, 3}), ones({3})}},
     {{ones({2, 3}), IValue()}}},
    {"optional_absent",
     "def forward(self, x, mask: Optional[Tensor]=None):\n  if mask is not None:\n    x = x * mask\n  return x + 1\n",
     {ones({2, 3})},
     {{ones({4, 3})}},
     {{ones({2, 3}), ones({2, 3})}}},
    {"integer_input",
     "def forward(self, x, steps: int):\n  outs = [x]\n  for i in range(steps):\n    outs.append(torch.sin(outs[-1]) * "
     "(i + 1))\n  return torch.cat(outs)\n",
     {ones({2, 3}), 3},
     {{ones({1, 5}), 3}},
     {{ones({2, 3}), 2}}},
    {"lists_of_tensors",
     "def forward(self, xs: List[Tensor]):\n  out = xs[0]\n  for x in xs:\n    out = out + x * x.size(0)\n  return "
     "out\n",
     {list_of({kA, kB})},
     {{list_of({kB, kA})}},
     {{list_of({kA, kB, kA})}, {list_of({kA})}}},
    {"dict_in_and_out",
     "def forward(self, d: Dict[str, Tensor]):\n  out = {\"sum\": d[\"a\"] + d[\"b\"]}\n  if d[\"a\"].size(1) > 2:\n   "
     " "
     "out[\"more\"] = d[\"a\"] * 2\n  return out[\"sum\"], out[\"more\"]\n",
     {dict_of({{"a", kA}, {"b", kB}})},
     {{dict_of({{"b", kA}, {"a", kB}})}},
     {}},
    {"keys_that_are_made",
     "def forward(self, d: Dict[str, Tensor]):\n  out: Dict[str, Tensor] = {}\n  for k, v in d.items():\n    "
     "out[k + \"_\" + str(v.size(0))] = v * 2\n  return out[\"a_2\"] + out[\"b_2\"]\n",
     {dict_of({{"a", kA}, {"b", kB}})},
     {{dict_of({{"a", kB}, {"b", kA}})}},
     {{dict_of({{"a", kA}, {"c", kB}})}, {dict_of({{"a", kA}, {"b", torch::ones({3, 3})}})}}},
    {"dicts_of_pairs",
     "def forward(self, x):\n  made = dict(dict([(\"a\", x + 1), (\"b\", x * 2)]))\n  for k, v in made.items():\n"
     "    if k in [\"b\", \"c\"]:\n      x = x + v\n  return x\n",
     {ones({2, 3})},
     {{ones({4})}},
     {}},
    {"sorted_in_place",
     "def forward(self, x):\n  sizes = [x.size(0), x.size(1), x.size(2)]\n  sizes.sort(reverse=True)\n  return "
     "x.reshape(sizes[0], -1) * sizes[2]\n",
     {ones({2, 3, 4})},
     {{ones({5, 3, 4})}, {ones({2, 2, 2})}, {ones({1, 7, 3})}},
     {}},
    {"sorted_words",
     "def forward(self, x):\n  words = [\"b\", \"c\", \"a\"]\n  words.sort()\n  numbers = {\"a\": 1, \"b\": 2}\n  "
     "return "
     "x * numbers[words[0]] + numbers[words[1]]\n",
     {ones({2, 3})},
     {{ones({5, 1})}},
     {}},
    {"written_at_an_index",
     "def forward(self, x):\n  parts = [x, x + 1]\n  parts[x.size(0) % 2] = x * 3\n  return parts[0] - parts[1]\n",
     {ones({2, 3})},
     {{ones({4, 1})}},
     {{ones({3, 3})}}},
    {"interpolated",
     "def forward(self, x):\n  h = int(float(x.size(2)) * 1.5)\n  if h % 2 == 0:\n    h = h + 1\n  return "
     "torch.upsample_nearest2d(x, [h, x.size(3)])\n",
     {ones({1, 2, 4, 3})},
     {{ones({1, 2, 4, 5})}, {ones({1, 1, 8, 5})}},
     {{ones({1, 2, 6, 3})}}},
    {"own_buffer_is_written",
     "def forward(self, x):\n  if x.size(0) > 1:\n    self.table.add_(1)\n  return x.sum() + self.table\n",
     {ones({2, 3})},
     {},
     {{ones({1, 3})}}},
    {"size_that_data_decide",
     "def forward(self, x):\n  kept = x[x > 0]\n  if kept.size(0) == 0:\n    return x\n  return kept * 2\n",
     {ones({4, 4})},
     {{ones({5, 5})}},
     {{ones({2, 2})}}},
};

class AtExamples : public ::testing::TestWithParam<Case> {};

void expect_equal(const IValue& got, const IValue& expected) {
  if (!expected.isTuple()) {
    EXPECT_TRUE(got.toTensor().equal(expected.toTensor())) << got << "\n" << expected;
    return;
  }
  for (std::size_t i = 0; i < expected.toTupleRef().elements().size(); ++i)
    expect_equal(got.toTupleRef().elements().at(i), expected.toTupleRef().elements()[i]);
}

TEST_P(AtExamples, TheGraphIsTheFileOrRefuses) {
  const Case& each = GetParam();
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  const torch::NoGradGuard no_grad;
  const torch::jit::Module module = module_of(each.code);
  EXPECT_THAT(testing::one_line_error_of([&] { from_torchscript(module); }),
              ::testing::AnyOf(HasSubstr("give examples: LoadOptions::examples, or --input"), "no error"));
  const auto gm = from_torchscript(module, {.examples = each.example});
  gm->graph().lint();
  EXPECT_TRUE(module.attr("table").toTensor().equal(torch::arange(6, torch::kFloat))) << "reading wrote to the file's";
  std::vector<Inputs> equal = each.equal;
  equal.push_back(each.example);
  for (const Inputs& inputs : equal) {
    const IValue expected = module.deepcopy().get_method("forward")(inputs);
    expect_equal(from_torchscript(module.deepcopy(), {.examples = each.example})->run(inputs), expected);
  }
  for (const Inputs& inputs : each.refused) {
    EXPECT_THAT(testing::one_line_error_of([&] { gm->run(inputs); }),
                HasSubstr("the program was read for inputs at which "));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, AtExamples, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(AtExamplesOnly, WhatHangsOnElementsIsRefusedByName) {
  const torch::jit::Module module =
      module_of("def forward(self, x):\n  if bool(x.sum() > 0):\n    x = x + 1\n  return x\n");
  EXPECT_THAT(
      testing::one_line_error_of([&] {
        from_torchscript(module, {.examples = {ones({2, 2})}});
      }),
      HasSubstr("control flow that hangs on the elements of a tensor cannot become a graph: `if bool(x.sum() > 0):`"));
}

TEST(AtExamplesOnly, WhatACallSetsBeforeItReadsItIsItsOwn) {
  const auto with_cache = [](const std::string& code) {
    torch::jit::Module module(c10::QualifiedName("__torch__.mine.Cached"),
                              std::make_shared<torch::jit::CompilationUnit>(), true);
    module.register_attribute("training", c10::BoolType::get(), false);
    module.register_attribute("cache", c10::ListType::ofTensors(), c10::List<torch::Tensor>());
    module.register_attribute("level", c10::IntType::get(), 0);
    module.define(code);
    return module;
  };
  const auto gm = from_torchscript(
      with_cache("def forward(self, x):\n  self.cache = [x, x + 1]\n  return self.cache[0] * self.cache[1]\n"));
  EXPECT_TRUE(gm->forward(torch::ones({2})).equal(torch::full({2}, 2.0f)));
  const auto again = from_torchscript(
      with_cache("def forward(self, x):\n  self.level = 3\n  self.level = 0\n  return x + self.level\n"));
  EXPECT_TRUE(again->forward(torch::ones({2})).equal(torch::ones({2}))) << "what the file has is set again";
  EXPECT_THAT(testing::one_line_error_of([&] {
                from_torchscript(
                    with_cache("def forward(self, x):\n  n = len(self.cache)\n  self.cache = [x]\n  return x * n\n"));
              }),
              HasSubstr("setting attribute 'cache' while running cannot become a graph"));
}

// A state that is absent before the first call: the second call of the file goes another way.
TEST(AtExamplesOnly, WhatTheNextCallReadsIsRefused) {
  torch::jit::Module module(c10::QualifiedName("__torch__.mine.Hidden"),
                            std::make_shared<torch::jit::CompilationUnit>(), true);
  module.register_attribute("training", c10::BoolType::get(), false);
  module.register_attribute("hidden", c10::OptionalType::ofTensor(), c10::IValue());
  module.define(
      "def forward(self, x):\n  h = self.hidden\n  if h is None:\n    h = torch.zeros_like(x)\n  h = h + x\n  "
      "self.hidden = "
      "h\n  return h\n");
  for (const Inputs& examples : {Inputs{}, Inputs{ones({2, 2})}}) {
    EXPECT_THAT(testing::one_line_error_of([&] { from_torchscript(module, {.examples = examples}); }),
                HasSubstr("setting attribute 'hidden' while running cannot become a graph"));
  }
}

// What the first call makes of sizes, and later ones find, is asserted; a flag that changes nothing is none.
TEST(AtExamplesOnly, WhatOneCallSettlesIsAProgram) {
  const auto settling = [](const std::string& code) {
    torch::jit::Module module(c10::QualifiedName("__torch__.mine.Settling"),
                              std::make_shared<torch::jit::CompilationUnit>(), true);
    module.register_attribute("training", c10::BoolType::get(), false);
    module.register_attribute("scale", c10::OptionalType::create(c10::FloatType::get()), c10::IValue());
    module.register_attribute("calls", c10::IntType::get(), 0);
    module.register_attribute("warned", c10::BoolType::get(), false);
    module.define(code);
    return module;
  };
  const auto scaled = from_torchscript(
      settling("def forward(self, x):\n  s = self.scale\n  if s is None:\n    s = 8 / x.size(1)\n    self.scale = s\n"
               "  return x * s\n"),
      {.examples = {ones({3, 4})}});
  EXPECT_TRUE(scaled->forward(torch::ones({5, 4})).equal(torch::full({5, 4}, 2.0f)));
  EXPECT_THAT(testing::one_line_error_of([&] {
                scaled->forward(torch::ones({3, 8}));
              }),
              HasSubstr("the program was read for inputs at which 8 / x.size(1) == 2.0: `self.scale` becomes 2.0"))
      << "the file's second call would scale by what the first found";
  const auto warned =
      from_torchscript(settling("def forward(self, x):\n  if self.calls == 0:\n    self.calls = 1\n  return x + 1\n"),
                       {.examples = {ones({2})}});
  EXPECT_TRUE(warned->forward(torch::zeros({2})).equal(torch::ones({2})));
  const char* const once =
      "def forward(self, x):\n  if not self.warned:\n    print(\"once\")\n    self.warned = True\n";
  EXPECT_NO_THROW(
      from_torchscript(settling(once + std::string("  return torch.rand_like(x)\n")), {.examples = {ones({2})}}))
      << "no two calls give the same";
  for (const char* code :
       {"def forward(self, x):\n  self.calls = self.calls + 1\n  return x * self.calls\n",
        "def forward(self, x):\n  self.calls = self.calls + 1\n  return x\n",
        "def forward(self, x):\n  if self.calls == 0:\n    self.calls = 1\n    x = x * 2\n  return x\n"}) {
    EXPECT_THAT(testing::one_line_error_of([&] { from_torchscript(settling(code), {.examples = {ones({2})}}); }),
                HasSubstr("setting attribute 'calls' while running cannot become a graph"));
  }
}

// A question that is asked again is another one when something was written that it sees.
TEST(AtExamplesOnly, WhatWasWrittenInBetweenIsAskedAgain) {
  struct Case {
    const char* condition;
    const char* write;
    Inputs examples, others;
  };
  const auto ints = [](std::vector<std::int64_t> values) { return c10::List<std::int64_t>(values); };
  const Case cases[] = {
      {"len(l) < n", "l.append(1)", {ones({2}), ints({0}), 3}, {ones({2}), ints({0}), 2}},
      {"l[0] < n", "l[0] = n", {ones({2}), ints({4}), 3}, {ones({2}), ints({2}), 3}},
      {"l.pop() > 0", "n += 1", {ones({2}), ints({1, 1}), 3}, {ones({2}), ints({0, 1}), 3}},
      {"n in l", "l[0] = n + 1", {ones({2}), ints({3}), 3}, {ones({2}), ints({4}), 3}},
      {"x.size(0) == 2", "x.t_()", {ones({2, 2}), ints({}), 0}, {ones({2, 3}), ints({}), 0}},
      {"x.dim() == 3", "x.squeeze_(0)", {ones({2, 1, 3}), ints({}), 0}, {ones({1, 1, 3}), ints({}), 0}},
      {"x.numel() == n", "x.resize_(n)", {ones({3}), ints({}), 3}, {ones({3}), ints({}), 2}},
  };
  for (const Case& each : cases) {
    const std::string condition = each.condition;
    const torch::jit::Module module =
        module_of("def forward(self, x, l: List[int], n: int):\n  m = 0\n  if " + condition + ":\n    m += 1\n  " +
                  each.write + "\n  if " + condition + ":\n    m += 10\n  return m\n");
    const auto copies = [](const Inputs& inputs) {
      Inputs made;
      for (const c10::IValue& input : inputs) made.push_back(input.deepcopy());
      return made;
    };
    const auto gm = from_torchscript(module, {.examples = copies(each.examples)});
    for (const Inputs* of : {&each.examples, &each.others}) {
      const Inputs& inputs = *of;
      torch::jit::Module fresh = module.deepcopy();
      const std::int64_t expected = fresh.forward(copies(inputs)).toInt();
      std::optional<std::int64_t> found;
      const std::string refused = testing::one_line_error_of([&] { found = gm->run(copies(inputs)).toInt(); });
      EXPECT_TRUE(!found || *found == expected) << condition << " " << each.write << ": " << *found;
      EXPECT_TRUE(found || &inputs != &each.examples) << condition << refused;
    }
  }
}

TEST(AtExamplesOnly, WhetherGradientsAreWantedIsTheCallers) {
  EXPECT_THAT(testing::one_line_error_of([&] {
                from_torchscript(module_of("def forward(self, x):\n  if torch.is_grad_enabled():\n    x = x + 1\n"
                                           "  return x\n"),
                                 {.examples = {ones({2})}});
              }),
              HasSubstr("whether gradients are wanted is the caller's to say"));
}

TEST(AtExamplesOnly, OptionalsMayBeGivenOrAbsent) {
  const torch::jit::Module module = module_of(
      "def forward(self, x, y: Optional[Tensor] = None, n: int = 1):\n  if y is not None:\n    x = x + y\n"
      "  if x.size(0) > 2:\n    x = x * n\n  return x\n");
  const testing::ScratchFolder folder;
  const std::string file = (folder / "optional.pt").string();
  for (const bool given : {false, true}) {
    const c10::IValue y = given ? ones({3}) : c10::IValue();
    const auto gm = from_torchscript(module, {.examples = {ones({3}), y, 2}});
    EXPECT_TRUE(gm->graph().check().empty()) << gm->graph();
    gm->save(file);
    const auto again = load(file);
    for (const auto& program : {gm, again}) {
      torch::jit::Module fresh = module.deepcopy();
      const torch::Tensor expected = fresh.forward({ones({3}), y, 2}).toTensor();
      EXPECT_TRUE(program->run({ones({3}), y, 2}).toTensor().equal(expected));
      EXPECT_THAT(testing::one_line_error_of([&] {
                    program->run({ones({3}), given ? c10::IValue() : ones({3}), 2});
                  }),
                  HasSubstr(given ? "`y` is given" : "`y` is None"));
    }
  }
}

TEST(AtExamplesOnly, KeysAndWordsInContainersAreNoData) {
  const torch::jit::Module module = module_of(
      "def forward(self, d: Dict[str, Tensor], t: Tuple[Tensor, str]):\n  x = t[0]\n  if 'm' in d:\n    x = x * "
      "d['m']\n"
      "  if t[1] == 'twice':\n    x = x * 2\n  return x\n");
  c10::Dict<std::string, torch::Tensor> dict;
  dict.insert("m", torch::full({2}, 3.0f));
  const c10::IValue pair = c10::ivalue::Tuple::create({ones({2}), "twice"});
  const auto gm = from_torchscript(module, {.examples = {dict, pair}});
  torch::jit::Module fresh = module.deepcopy();
  EXPECT_TRUE(gm->run({dict, pair}).toTensor().equal(fresh.forward({dict, pair}).toTensor()));
  EXPECT_FALSE(testing::one_line_error_of([&] {
                 gm->run({dict, c10::ivalue::Tuple::create({ones({2}), "once"})});
               }).empty());
}

TEST(AtExamplesOnly, LazyExamplesAreAskedForWhereTheyAreNeeded) {
  int asked = 0;
  LoadOptions options;
  options.lazy_examples = [&] { return ++asked, Inputs{ones({3, 2})}; };
  from_torchscript(module_of("def forward(self, x):\n  return x + x.size(0)\n"), options);
  EXPECT_EQ(asked, 0);
  const char* kBySize = "def forward(self, x):\n  if x.size(0) > 2:\n    x = x * 2\n  return x\n";
  EXPECT_TRUE(from_torchscript(module_of(kBySize), options)->forward(torch::ones({4})).equal(torch::full({4}, 2.0f)));
  EXPECT_EQ(asked, 1);
  const auto traced = symbolic_trace(module_of(kBySize), {ones({3, 2})});
  EXPECT_TRUE(traced->forward(torch::ones({4})).equal(torch::full({4}, 2.0f)));
}

TEST(AtExamplesOnly, ExamplesMustBeAsManyAsTheInputs) {
  const torch::jit::Module module = module_of("def forward(self, x, y):\n  return x + y\n");
  EXPECT_THAT(testing::one_line_error_of([&] { from_torchscript(module, {.examples = {ones({2})}}); }),
              HasSubstr("there is no example for the input 'y'"));
  EXPECT_THAT(testing::one_line_error_of([&] {
                from_torchscript(module, {.examples = {ones({2}), ones({2}), 3}});
              }),
              HasSubstr("3 examples are given, and the model takes 2 inputs"));
}

TEST(AtExamplesOnly, RandomNumbersOfTheProcessStay) {
  const torch::jit::Module module =
      module_of("def forward(self, x):\n  if x.size(0) > 1:\n    x = torch.rand_like(x)\n  return x\n");
  torch::manual_seed(3);
  const torch::Tensor first = torch::rand({4});
  torch::manual_seed(3);
  from_torchscript(module, {.examples = {ones({2, 2})}});
  EXPECT_TRUE(torch::rand({4}).equal(first));
}

}  // namespace fx::examples_test
