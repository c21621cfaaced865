// What saving would change silently: refused by name. Indices of every form: saved, they are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <sstream>
#include <tuple>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/torchscript/module_of_code.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::kept_effects_test {

std::string call(const char* name, const char* target, const std::string& args) {
  return std::string("%") + name + " = call_function[target=" + target + "](args = (" + args + "))\n";
}

GraphModule program(const std::string& lines) {
  return GraphModule(parse_graph("graph():\n%x = placeholder[target=x]\n" + lines));
}

struct Case {
  std::string lines;
  const char* why;  ///< empty: it can be saved
};

TEST(KeptEffects, WhatTorchScriptWouldDropIsRefused) {
  const char *hidden = "for a tensor of its own", *draw = "nothing that comes out depends on the random numbers";
  const std::string cell = call("g", "aten::exp", "%x") + call("c", "aten::unsafe_chunk", "%g, 2, 1") +
                           call("a", "operator.getitem", "%c, 0") + call("b", "operator.getitem", "%c, 1") +
                           call("s", "aten::sigmoid_", "%a") + call("sum", "aten::add_.Tensor", "%b, %s");
  const Case cases[] = {
      {call("d", "aten::dropout", "%x, 0.5, False") + call("w", "aten::zero_", "%d") + "return x", hidden},
      {call("d", "aten::dropout", "%x, 0.5, False") + call("w", "aten::zero_", "%x") + "return d", hidden},
      {call("d", "aten::atleast_2d", "%x") + call("v", "aten::t", "%d") + call("w", "aten::neg_", "%v") + "return x",
       hidden},
      {call("d", "torch.atleast_1d", "%x") + call("w", "aten::neg_", "%d") + "return x", hidden},
      {call("d", "aten::dropout", "%x, 0.5, False") + "return d", ""},
      {call("n", "aten::neg", "%x") + call("w", "aten::add_.Scalar", "%n, 1") +
           call("d", "aten::dropout", "%w, 0.5, False") + "return d",
       ""},
      {call("d", "aten::contiguous", "%x") + call("w", "aten::neg_", "%d") + "return x", ""},
      {call("d", "aten::dropout", "%x, 0.5, True") + "return x", draw},
      {call("d", "torch.rand", "[3]") + call("e", "aten::neg", "%d") + "return x", draw},
      {call("d", "aten::neg", "%x") + call("e", "aten::normal_", "%d") + "return x", draw},
      {call("d", "aten::neg", "%x") + call("v", "aten::t", "%d") + call("e", "aten::normal_", "%v") + "return d", ""},
      {call("d", "aten::neg", "%x") + call("r", "aten::relu", "%d") + call("e", "aten::bernoulli_", "%d") + "return r",
       draw},
      {call("d", "aten::neg", "%x") + call("e", "aten::bernoulli_", "%d") + call("r", "aten::relu", "%d") + "return r",
       ""},
      {call("e", "aten::normal_", "%x") + "return None", ""},
      {call("d", "aten::dropout", "%x, 0.5, True") + "return d", ""},
      // Chunks that are written and read themselves, as recurrent cells do, and what else sees the writes.
      {cell + "return sum", ""},
      {cell + call("n", "aten::neg", "%g") + "return (sum, n)", hidden},
      {cell + "return (sum, g)", hidden},
      {call("c", "aten::unsafe_chunk", "%x, 2, 1") + call("a", "operator.getitem", "%c, 0") +
           call("s", "aten::sigmoid_", "%a") + "return s",
       hidden},
      {call("g", "aten::neg", "%x") + call("c", "aten::unsafe_chunk", "%g, 2, 1") +
           call("a", "operator.getitem", "%c, 0") + call("z", "aten::zero_", "%g") + "return a",
       hidden},
      {call("a", "torch._foreach_neg_", "[%x]") + "return x", "writes to the tensors of a list"},
      {call("a", "aten::_foreach_add_.Scalar", "[%x], 1.0") + "return x", "writes to the tensors of a list"},
      {call("a", "aten::div.Scalar", "%x, 0.0") + call("b", "aten::div.Scalar", "%x, -0.0") + "return (a, b)",
       "one constant"},
      {call("b", "aten::div.Scalar", "%x, -0.0") + "return b", ""},
      {"%a = call_function[target=aten::add.Tensor](args = (-1.5, %x), kwargs = {alpha: -2})\nreturn a",
       "a say in the type"},
      {call("a", "aten::add.Tensor", "-1.5, %x") + "return a", ""},
  };
  for (const Case& each : cases) {
    const GraphModule gm = program(each.lines);
    if (*each.why) {
      EXPECT_THAT([&] { to_torchscript(gm); }, ::testing::ThrowsMessage<Error>(::testing::HasSubstr(each.why)))
          << each.lines;
    } else {
      EXPECT_NO_THROW(to_torchscript(gm)) << each.lines;
    }
  }
}

// TorchScript's schemas of norms say nothing of the statistics that they write; LibTorch writes out what modules do.
TEST(KeptEffects, WhatGoesWithAnUnusedResultIsRefused) {
  torch::nn::Dropout dropout(0.5);
  const std::string statistics = "%m = get_attr[target=m]\n%v = get_attr[target=v]\n";
  const std::string trained = call("b", "aten::batch_norm", "%x, None, None, %m, %v, True, 0.1, 0.1, True");
  const auto with_state = [&](const std::string& lines) {
    return GraphModule({{"m", torch::zeros({2})},
                        {"v", torch::ones({2})},
                        {"dropout", std::shared_ptr<torch::nn::Module>(dropout.ptr())}},
                       parse_graph("graph():\n%x = placeholder[target=x]\n" + lines));
  };
  const auto refuses = [&](const std::string& lines, const char* why) {
    EXPECT_THAT([&] { to_torchscript(with_state(lines)); }, ::testing::ThrowsMessage<Error>(::testing::HasSubstr(why)))
        << lines;
  };
  const std::string dropped = "%n = call_module[target=dropout](args = (%x,))\n";
  refuses(statistics + trained + "return x", "what it writes (running statistics)");
  refuses(dropped + "return x", "the random numbers that it draws");
  EXPECT_NO_THROW(to_torchscript(with_state(statistics + trained + "return b")));
  dropout->eval();
  EXPECT_NO_THROW(to_torchscript(with_state(dropped + "return x")));
  refuses(dropped + call("z", "aten::zero_", "%n") + "return x", "TorchScript takes that for a tensor of its own");
}

// LibTorch writes a graph out in place of the call that is given it.
TEST(KeptEffects, WhatGoesWithTheResultOfANestedGraphIsRefused) {
  const std::string run = call("r", "torch.ops.higher_order.wrap_with_set_grad_enabled.default", "False, %body, %x");
  const auto program = [&](const std::string& body, const std::string& lines) {
    return GraphModule({{"m", torch::zeros({2})},
                        {"v", torch::ones({2})},
                        {"body", std::make_shared<GraphModule>(
                                     GraphModule::Attributes{{"m", torch::zeros({2})}, {"v", torch::ones({2})}},
                                     parse_graph("graph():\n%x = placeholder[target=x]\n" + body))}},
                       parse_graph("graph():\n%x = placeholder[target=x]\n%body = get_attr[target=body]\n" + lines));
  };
  const auto refuses = [](const GraphModule& gm, const char* why) {
    EXPECT_THAT([&] { to_torchscript(gm); }, ::testing::ThrowsMessage<Error>(::testing::HasSubstr(why)));
  };
  const std::string draws = call("d", "aten::dropout", "%x, 0.5, True") + "return d";
  const std::string trains = "%m = get_attr[target=m]\n%v = get_attr[target=v]\n" +
                             call("b", "aten::batch_norm", "%x, None, None, %m, %v, True, 0.1, 0.1, True") + "return b";
  refuses(program(draws, run + "return x"), "the random numbers that it draws");
  refuses(program(trains, run + "return x"), "what it writes (running statistics)");
  refuses(program(call("d", "aten::dropout", "%x, 0.5, False") + "return d",
                  run + call("z", "aten::zero_", "%r") + "return x"),
          "TorchScript takes that for a tensor of its own");
  refuses(program(draws, "return (x, body)"), "it is a graph");
  EXPECT_NO_THROW(to_torchscript(program(draws, run + "return r")));
  EXPECT_NO_THROW(to_torchscript(program(call("n", "aten::neg", "%x") + "return n", run + "return x")));
  EXPECT_NO_THROW(to_torchscript(program(
      call("d", "aten::rand_like", "%x") + call("w", "aten::add_.Tensor", "%x, %d") + "return w", run + "return x")));
}

TEST(KeptEffects, ContainersMadeOfOthersAreTheirOwn) {
  const c10::IValue x = torch::ones({2});
  const auto numbers = [] { return c10::IValue(std::vector<std::int64_t>{1, 2}); };
  const auto tensors = [] { return c10::IValue(std::vector<torch::Tensor>{torch::ones({2}), torch::zeros({2})}); };
  const std::tuple<const char*, std::vector<std::function<c10::IValue()>>> cases[] = {
      {"def forward(self, x, n: List[int]):\n  m = n[:]\n  m.append(4)\n  return x * m[-1], m, n\n",
       {[&] { return x; }, numbers}},
      {"def forward(self, x, n: List[int]):\n  m = n + [3]\n  m.reverse()\n  return x * m[0], n\n",
       {[&] { return x; }, numbers}},
      {"def forward(self, t: List[Tensor]):\n  u = t[::-1]\n  t.clear()\n  return u\n", {tensors}},
      {"def forward(self, t: List[Tensor]):\n  u = t[1:]\n  t[1].add_(1)\n  return u, t\n", {tensors}},
      {"def forward(self, x, t: List[Optional[Tensor]]):\n  for y in t:\n    if y is not None:\n      x = x + y\n"
       "  return x\n",
       {[&] { return x; },
        [] {
          c10::impl::GenericList list(c10::OptionalType::ofTensor());
          list.push_back(c10::IValue());
          list.push_back(torch::ones({2}));
          return c10::IValue(list);
        }}}};
  for (const auto& [code, inputs] : cases) {
    const torch::jit::Module module = testing::module_of(code);
    const auto given = [&inputs = inputs] {
      std::vector<c10::IValue> values;
      for (const auto& make : inputs) values.push_back(make());
      return values;
    };
    const torch::jit::Module saved = testing::saved_and_loaded(*from_torchscript(module, {.examples = given()}));
    const auto text = [](const c10::IValue& value) { return (std::ostringstream() << value).str(); };
    for (int run = 0; run < 3; ++run)
      EXPECT_EQ(text(saved.get_method("forward")(given())), text(module.get_method("forward")(given()))) << code;
  }
}

/// All tuples of up to four items.
void for_each_index(const std::vector<std::string>& items, const std::function<void(const std::string&)>& visit) {
  std::vector<std::string> some = {""};
  for (int length = 1; length <= 4; ++length) {
    std::vector<std::string> longer;
    for (const std::string& before : some) {
      for (const std::string& item : items) longer.push_back(before + item + ", ");
    }
    some = std::move(longer);
    for (const std::string& index : some) visit("(" + index.substr(0, index.size() - 2) + (length == 1 ? ",)" : ")"));
  }
}

TEST(KeptEffects, SavedIndicesTakeTheSame) {
  const torch::Tensor x = torch::arange(2 * 3 * 4).view({2, 3, 4});
  std::size_t same = 0, refused = 0;
  for_each_index({"None", "Ellipsis", "1", "-1", "slice(None, 2, None)", "slice(1, None, 2)"},
                 [&](const std::string& index) {
                   GraphModule gm = program(call("y", "operator.getitem", "%x, " + index) + "return y");
                   torch::Tensor expected;
                   try {
                     expected = gm.forward(x);
                   } catch (const std::exception&) {
                     return;  // too many
                   }
                   try {
                     const torch::Tensor found = to_torchscript(gm).forward({x}).toTensor();
                     ASSERT_TRUE(expected.sizes() == found.sizes() && expected.equal(found)) << index;
                     ++same;
                   } catch (const Error& error) {
                     EXPECT_NE(index.find("Ellipsis"), index.rfind("Ellipsis")) << index << ": " << error.what();
                     ++refused;
                   }
                 });
  EXPECT_GT(same, 600u);
  EXPECT_GT(refused, 0u);
}

}  // namespace fx::kept_effects_test
