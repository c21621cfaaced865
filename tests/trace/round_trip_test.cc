// What is traced can be written and read again, as text and as TorchScript, and still computes the same.
#include "tests/trace/nn_cases.h"
#include "tests/trace/round_trips.h"
#include "tests/trace/torch_models.h"

namespace fx::round_trip_test {

using testing::all_nn_cases;
using testing::expect_round_trips;
using testing::NnCase;

class RoundTripsNight : public ::testing::TestWithParam<NnCase> {};

TEST_P(RoundTripsNight, OfModules) {
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

INSTANTIATE_TEST_SUITE_P(All, RoundTripsNight, ::testing::ValuesIn(all_nn_cases()),
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

}  // namespace fx::round_trip_test
