// What is traced can be written and read again, as text and as TorchScript, and still computes the same.
#include <sstream>

#include <torch/script.h>

#include "tests/trace/nn_cases.h"
#include "tests/trace/torch_models.h"
#include "tests/trace/trace_testing.h"
#include "text/parse.h"
#include "torchscript/export.h"
#include "torchscript/import.h"

namespace fx {
namespace {

using testing::all_nn_cases;
using testing::NnCase;
using testing::same_value;

// What the graph names, to build it again from its text.
GraphModule::Attributes attributes_of(const GraphModule& gm) {
  GraphModule::Attributes attributes;
  for (const Node& node : gm.graph().nodes()) {
    const std::string path = node.target().str();
    if (node.is(Op::get_attr)) attributes.emplace_back(path, gm.attribute(path));
    if (node.is(Op::call_module)) attributes.emplace_back(path, gm.submodule(path));
  }
  return attributes;
}

torch::jit::Module saved_and_loaded(const torch::jit::Module& module) {
  std::stringstream file;
  module.save(file);
  return torch::jit::load(file);
}

void expect_same_from_text(const GraphModule& gm, const std::vector<c10::IValue>& inputs, const c10::IValue& expected) {
  const std::string text = print_graph(gm.graph());
  Graph parsed = parse_graph(text);
  EXPECT_EQ(print_graph(parsed), text);
  GraphModule again(attributes_of(gm), std::move(parsed));
  again.train(gm.is_training());
  EXPECT_TRUE(same_value(again.run(inputs), expected, 1e-6));
}

void expect_same_from_torchscript(const GraphModule& gm, const std::vector<c10::IValue>& inputs,
                                  const c10::IValue& expected) {
  torch::jit::Module loaded = saved_and_loaded(to_torchscript(gm));
  EXPECT_TRUE(same_value(loaded.forward(inputs), expected, 1e-5));
  EXPECT_TRUE(same_value(from_torchscript(loaded)->run(inputs), expected, 1e-5));
}

void expect_round_trips(Trace trace, const std::vector<c10::IValue>& inputs) {
  const auto gm = to_graph_module(std::move(trace));
  const c10::IValue expected = gm->run(inputs);
  try {
    expect_same_from_text(*gm, inputs, expected);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "text: " << error.what() << "\n" << gm->graph();
  }
  try {
    expect_same_from_torchscript(*gm, inputs, expected);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "TorchScript: " << error.what() << "\n" << gm->graph();
  }
}

class RoundTripsSlow : public ::testing::TestWithParam<NnCase> {};

TEST_P(RoundTripsSlow, OfModules) {
  torch::NoGradGuard no_grad;
  GetParam().module->eval();
  Tracer tracer;
  {
    SCOPED_TRACE("operators");
    expect_round_trips(GetParam().trace(tracer, GetParam().inputs), GetParam().inputs);
  }
  SCOPED_TRACE("leaf");
  expect_round_trips(GetParam().trace_child(tracer, GetParam().inputs), GetParam().inputs);
}

INSTANTIATE_TEST_SUITE_P(All, RoundTripsSlow, ::testing::ValuesIn(all_nn_cases()),
                         [](const ::testing::TestParamInfo<NnCase>& info) { return info.param.name; });

// ── Inputs and outputs of all kinds
// ────────────────────────────────────────────────────────────────────────────────────

template <typename Program>
void expect_function_round_trips(Program&& program, const std::vector<c10::IValue>& inputs) {
  Tracer tracer;
  expect_round_trips(tracer.trace(program, inputs), inputs);
}

TEST(RoundTrips, ContainersAndLiterals) {
  using torch::Tensor;
  const Tensor a = torch::rand({2, 3}), b = torch::rand({2, 3});
  expect_function_round_trips([](std::tuple<Tensor, Tensor> x) { return std::get<0>(x) - std::get<1>(x); },
                              {std::make_tuple(a, b)});
  expect_function_round_trips([](const std::vector<Tensor>& x) { return torch::stack(x); },
                              {std::vector<Tensor>{a, b}});
  c10::Dict<std::string, Tensor> dict;
  dict.insert("a", a);
  dict.insert("b", b);
  expect_function_round_trips(
      [](const std::map<std::string, Tensor>& x) { return std::make_tuple(x.at("a") + x.at("b"), x); }, {dict});
  expect_function_round_trips(
      [](Tensor x, double scale, std::int64_t dim, bool keep) { return (x * scale).sum(dim, keep); },
      {a, 0.5, std::int64_t{1}, true});
  expect_function_round_trips([](Tensor x, c10::optional<Tensor> y) { return y ? x + *y : x; }, {a, c10::IValue()});
  expect_function_round_trips([](Tensor x, c10::optional<Tensor> y) { return y ? x + *y : x; }, {a, b});
  expect_function_round_trips([](Tensor x) { return x.topk(2); }, {a});
  expect_function_round_trips([](Tensor x) { return x.chunk(3, 1); }, {a});
  expect_function_round_trips(
      [](Tensor x) {
        return std::make_tuple(x, 3, 0.5, true, std::vector<Tensor>{x, x + 1});
      },
      {a});
  expect_function_round_trips(
      [](Tensor x) {
        return 1 - x + torch::tensor({1.0F, 2.0F, 3.0F}) / torch::arange(1, 4);
      },
      {a});
}

TEST(RoundTrips, LeavesInAnotherModeAreRefused) {
  struct Net : torch::nn::Module {
    Net() { lstm = register_module("lstm", torch::nn::LSTM(2, 3)); }
    torch::Tensor forward(torch::Tensor x) { return std::get<0>(lstm->forward(x)); }
    torch::nn::LSTM lstm{nullptr};
  };
  const auto gm = symbolic_trace(std::make_shared<Net>(), {torch::rand({4, 1, 2})});
  EXPECT_NO_THROW(to_torchscript(*gm));
  gm->eval();
  EXPECT_FX_ERROR(to_torchscript(*gm), unsupported, ::testing::HasSubstr("%lstm"), ::testing::HasSubstr("mode"));
}

template <typename Model>
void expect_model_round_trips(Model model, const torch::Tensor& input) {
  torch::NoGradGuard no_grad;
  for (const bool training : {false, true}) {
    model->train(training);
    for (const bool raised : {false, true}) {
      SCOPED_TRACE(std::string(training ? "training" : "evaluating") + (raised ? ", leaf modules" : ", operators"));
      TraceOptions options;
      options.raise_leaf_modules = raised;
      Tracer tracer(options);
      expect_round_trips(tracer.trace(model, {input}), {input});
    }
  }
}

TEST(RoundTrips, Mlp) { expect_model_round_trips(testing::Mlp(), torch::rand({2, 8})); }
TEST(RoundTrips, LeNet) { expect_model_round_trips(testing::LeNet(), torch::rand({2, 1, 28, 28})); }
TEST(RoundTrips, ResNet18) { expect_model_round_trips(testing::ResNet18(8), torch::rand({2, 3, 64, 64})); }
TEST(RoundTrips, UNet) { expect_model_round_trips(testing::UNet(), torch::rand({2, 1, 16, 16})); }

}  // namespace
}  // namespace fx
