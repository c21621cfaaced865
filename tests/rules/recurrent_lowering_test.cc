// fxgraph::packed_lstm in the place of aten::lstm, and so for GRUs: all their forms, lengths and batches, against
// LibTorch's; saved as TorchScript that LibTorch runs alone, and taken back.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/rnn.h>

#include <array>
#include <thread>

#include <fxgraph/export/save.h>
#include <fxgraph/fx.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>

#include "tests/rules/everywhere.h"
#include "tests/support/scratch_folder.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::recurrent_lowering_test {

using ::testing::HasSubstr;

constexpr std::int64_t kFeatures = 5, kWidth = 7;

struct Form {
  bool is_lstm;  ///< else a GRU
  std::int64_t layers;
  bool has_biases, is_bidirectional, is_batch_first;
};

constexpr Form kForms[] = {
    {true, 1, true, false, false},  {true, 1, false, false, true},  {true, 2, true, true, false},
    {true, 3, true, false, true},   {true, 2, false, true, true},   {true, 1, true, true, true},
    {false, 1, true, false, false}, {false, 1, false, false, true}, {false, 2, true, true, false},
    {false, 3, true, false, true},  {false, 2, false, true, true},  {false, 1, true, true, true},
};

std::string name_of(const Form& form) {
  return (form.is_lstm ? "LSTM of " : "GRU of ") + std::to_string(form.layers) + " layers" +
         (form.has_biases ? ", biases" : "") + (form.is_bidirectional ? ", both ways" : "") +
         (form.is_batch_first ? ", batch first" : "");
}

template <typename Network, typename Options>
torch::OrderedDict<std::string, at::Tensor> weights_of(const Form& form, Options options) {
  return Network(options.num_layers(form.layers).bias(form.has_biases).bidirectional(form.is_bidirectional))
      ->named_parameters();
}

/// All results of a network on an input and its states; of an LSTM the hidden one before the cell.
std::shared_ptr<GraphModule> program_of(const Form& form, double dropout = 0, std::int64_t projection = 0) {
  Graph graph;
  GraphModule::Attributes attributes;
  std::vector<Argument> weights;
  Node &x = graph.placeholder("x"), &h = graph.placeholder("h");
  const Argument states = form.is_lstm ? Argument::list(std::vector<Argument>{h, graph.placeholder("c")}) : Argument(h);
  const auto parameters =
      form.is_lstm ? weights_of<torch::nn::LSTM>(form, torch::nn::LSTMOptions(kFeatures, kWidth).proj_size(projection))
                   : weights_of<torch::nn::GRU>(form, torch::nn::GRUOptions(kFeatures, kWidth));
  for (const auto& item : parameters) {
    attributes.emplace_back(item.key(), item.value().detach());
    weights.emplace_back(graph.get_attr(item.key()));
  }
  Node& call =
      graph.call_function(form.is_lstm ? "aten::lstm.input" : "aten::gru.input",
                          std::vector<Argument>{x, states, Argument::list(weights), form.has_biases, form.layers,
                                                dropout, dropout > 0, form.is_bidirectional, form.is_batch_first});
  std::vector<Argument> results;
  for (std::int64_t i = 0; i < (form.is_lstm ? 3 : 2); ++i)
    results.emplace_back(graph.call_function("operator.getitem", std::vector<Argument>{call, i}));
  graph.output(Argument::tuple(results));
  return std::make_shared<GraphModule>(attributes, std::move(graph));
}

std::vector<c10::IValue> inputs_of(const Form& form, std::int64_t steps, std::int64_t batch,
                                   std::int64_t width = kWidth) {
  const std::int64_t states = form.layers * (form.is_bidirectional ? 2 : 1);
  const at::Tensor x =
      form.is_batch_first ? at::randn({batch, steps, kFeatures}) : at::randn({steps, batch, kFeatures});
  std::vector<c10::IValue> inputs = {x, at::randn({states, batch, width})};
  if (form.is_lstm) inputs.emplace_back(at::randn({states, batch, kWidth}));
  return inputs;
}

std::size_t packed_calls(const GraphModule& module) {
  return module.graph().count(Op::call_function, "fxgraph::packed_lstm") +
         module.graph().count(Op::call_function, "fxgraph::packed_gru");
}

std::shared_ptr<GraphModule> lowered(const GraphModule& original, const Form& form, std::string_view rule) {
  auto made = original.clone_graph_module();
  const Shapes shapes = propagate_shapes(*made, inputs_of(form, 4, 2));
  testing::rewrite_everywhere(*made, {"lowering"}, {rule}, shapes);
  return made;
}

/// The rules of a form, two for each way in which the weight of the state may lie.
std::vector<std::string> rules_of(const Form& form) {
  const std::string network = form.is_lstm ? "lstm" : "gru";
  std::vector<std::string> rules;
  for (const char* kernel : {"/", "/xnnpack-"}) {
    for (const char* by : {"-rows", "-columns"}) rules.push_back(kernel + network + by);
  }
  return rules;
}

class Networks : public ::testing::TestWithParam<Form> {
 protected:
  const at::NoGradGuard no_grad_;
};

TEST_P(Networks, AreTheSameForEveryLengthAndBatch) {
  const auto original = program_of(GetParam());
  for (const std::string& rule : rules_of(GetParam())) {
    const auto made = lowered(*original, GetParam(), rule);
    ASSERT_EQ(packed_calls(*made), 1u);
    for (const std::int64_t steps : {1, 2, 17}) {
      for (const std::int64_t batch : {1, 2, 5}) {
        const std::vector<c10::IValue> inputs = inputs_of(GetParam(), steps, batch);
        EXPECT_LE(run_difference(*original, *made, inputs, 2), 1e-5) << steps << " steps, batch " << batch;
        const auto was = original->run(inputs).toTuple()->elements(), is = made->run(inputs).toTuple()->elements();
        for (std::size_t i = 0; i < was.size(); ++i) EXPECT_EQ(was[i].toTensor().strides(), is[i].toTensor().strides());
      }
    }
    std::vector<c10::IValue> other_batch = inputs_of(GetParam(), 3, 4), more_states = inputs_of(GetParam(), 3, 1);
    other_batch[0] = inputs_of(GetParam(), 3, 3)[0];
    for (std::size_t i = 1; i < more_states.size(); ++i)
      more_states[i] = at::cat({more_states[i].toTensor(), more_states[i].toTensor()});
    std::vector<c10::IValue> fewer_features = inputs_of(GetParam(), 3, 4);
    fewer_features[0] = fewer_features[0].toTensor().narrow(2, 0, kFeatures - 1);
    std::vector<c10::IValue> other_type = inputs_of(GetParam(), 3, 4);
    other_type.back() = other_type.back().toTensor().to(at::kDouble);
    EXPECT_ANY_THROW(made->run(other_type));
    for (const auto& refused : {inputs_of(GetParam(), 0, 2), other_batch, more_states, fewer_features,
                                inputs_of(GetParam(), 3, 4, kWidth - 1), inputs_of(GetParam(), 3, 4, kWidth + 1)}) {
      EXPECT_ANY_THROW(original->run(refused));  // by fxgraph: LibTorch's LSTM reads beyond a state that is too small
      EXPECT_ANY_THROW(made->run(refused));
    }
  }
}

TEST_P(Networks, WriteToNothingOfTheCaller) {
  for (const std::string& rule : rules_of(GetParam())) {
    const auto made = lowered(*program_of(GetParam()), GetParam(), rule);
    for (const std::int64_t batch : {1, 2}) {
      const std::vector<c10::IValue> inputs = inputs_of(GetParam(), 3, batch);
      std::vector<at::Tensor> before;
      for (const c10::IValue& input : inputs) before.push_back(input.toTensor().clone());
      const c10::IValue first = made->run(inputs);
      EXPECT_EQ(relative_difference(first, made->run(inputs)), 0);
      for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(at::equal(before[i], inputs[i].toTensor()));
    }
  }
}

TEST_P(Networks, AreSavedAsWhatLibTorchRunsAndComeBack) {
  const auto original = program_of(GetParam());
  for (const std::string& rule : rules_of(GetParam())) {
    const auto made = lowered(*original, GetParam(), rule);
    torch::jit::Module plain = testing::saved_and_loaded(*made);
    const auto back = from_torchscript(plain);
    EXPECT_EQ(packed_calls(*back), 1u) << print_graph(back->graph());
    const auto twice = from_torchscript(testing::saved_and_loaded(*back));
    for (const std::int64_t batch : {1, 3}) {
      const std::vector<c10::IValue> inputs = inputs_of(GetParam(), 6, batch);
      const c10::IValue expected = original->run(inputs);
      EXPECT_LE(relative_difference(expected, plain.forward(inputs)), 1e-5);
      EXPECT_LE(relative_difference(expected, back->run(inputs)), 1e-5);
      EXPECT_LE(relative_difference(expected, twice->run(inputs)), 1e-5);
    }
  }
}

// torch.export has no functions: nobody else could run it.
TEST_P(Networks, AreNotExported) {
  const auto made = lowered(*program_of(GetParam()), GetParam(), rules_of(GetParam())[0]);
  const testing::ScratchFolder folder;
  const std::string path = (folder.path() / "packed.pt2").string();
  try {
    save_exported(*made, path, {.inputs = inputs_of(GetParam(), 4, 2)});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("decompose-packed"));
  }
}

TEST_P(Networks, AreUndone) {
  const auto original = program_of(GetParam());
  for (const std::string& rule : rules_of(GetParam())) {
    const auto made = lowered(*original, GetParam(), rule);
    optimize(*made, {.rules = {"decompose-packed"}});
    EXPECT_EQ(packed_calls(*made), 0u);
    EXPECT_EQ(made->graph().count(Op::call_function, GetParam().is_lstm ? "aten::lstm.input" : "aten::gru.input"), 1u);
    EXPECT_EQ(made->graph().count(Op::call_function, "prepacked::linear_clamp_prepack"), 0u);
    EXPECT_LE(run_difference(*original, *made, inputs_of(GetParam(), 4, 3), 2), 1e-5);
  }
}

// XNNPACK keeps state in what it packed; calls may share some of it.
TEST_P(Networks, RunInSeveralThreads) {
  const auto original = program_of(GetParam());
  const auto made = lowered(*original, GetParam(), rules_of(GetParam()).back());
  const std::vector<c10::IValue> inputs = inputs_of(GetParam(), 9, 3);
  const c10::IValue expected = original->run(inputs);
  made->run(inputs);
  std::vector<std::thread> threads;
  std::array<double, 4> differences{};
  for (double& difference : differences) {
    threads.emplace_back([&] {
      const at::NoGradGuard no_grad;
      for (int i = 0; i < 20; ++i) difference = std::max(difference, relative_difference(expected, made->run(inputs)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double difference : differences) EXPECT_LE(difference, 1e-5);
}

// Sizes are tried one by one there, and LibTorch reads beyond a state of another number of sequences.
TEST_P(Networks, TakeTheirStatesAsInputsOfAnOptimisedProgram) {
  const auto original = program_of(GetParam()), made = original->clone_graph_module();
  std::vector<TensorInfo> inputs;
  for (const c10::IValue& input : inputs_of(GetParam(), 4, 2)) inputs.push_back(tensor_info(input.toTensor()));
  optimize(*made, {.inputs = inputs, .target = "cpu"});
  for (const std::int64_t batch : {1, 2, 5})
    EXPECT_LE(run_difference(*original, *made, inputs_of(GetParam(), 3, batch), 2), 1e-5) << batch;
}

INSTANTIATE_TEST_SUITE_P(Forms, Networks, ::testing::ValuesIn(kForms), [](const auto& info) {
  std::string name = name_of(info.param);
  std::erase_if(name, [](char each) { return each == ',' || each == ' '; });
  return name;
});

TEST(RecurrentLowering, LeavesWhatItCannotSay) {
  const at::NoGradGuard no_grad;
  const Form form = {true, 2, true, false, false};
  EXPECT_EQ(packed_calls(*lowered(*program_of(form, /*dropout=*/0.5), form, "lower-recurrent")), 0u);
  const auto projected = program_of(form, 0, /*projection=*/3);
  const Shapes shapes = propagate_shapes(*projected, inputs_of(form, 4, 2, 3));
  testing::rewrite_everywhere(*projected, {"lowering"}, {"lower-recurrent"}, shapes);
  EXPECT_EQ(packed_calls(*projected), 0u);
}

// Where it is measured, in a program of which no shape is told it says what it needs.
TEST(RecurrentLowering, SaysWhatItNeeds) {
  const auto program = program_of({false, 1, true, false, false});
  const OptimizeReport report = optimize(*program, {.target = "cpu"});
  bool said = false;
  for (const RuleOutcome& outcome : report.rules) {
    for (const Refusal& refusal : outcome.refused) said |= refusal.reason.find("give --input") != std::string::npos;
  }
  EXPECT_TRUE(said);
}

struct Tagger : torch::nn::Module {
  torch::nn::LSTM lstm{nullptr};
  Tagger() { lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(64, 64).batch_first(true))); }
  at::Tensor forward(at::Tensor x) { return std::get<0>(lstm->forward(x)).relu(); }
};

// A module of torch.nn is written out first; what is fastest is measured, and either is the same.
TEST(RecurrentLowering, ReachesModulesThatWereTraced) {
  const at::NoGradGuard no_grad;
  const auto module = std::make_shared<Tagger>();
  module->eval();
  const at::Tensor x = at::randn({1, 40, 64});
  const auto traced = symbolic_trace(module, {x});
  const auto made = traced->clone_graph_module();
  optimize(*made, {.inputs = {TensorInfo{.dtype = DType::float32, .sizes = {1, 40, 64}}}, .target = "cpu"});
  EXPECT_EQ(made->graph().count(Op::call_module, "lstm"), 0u) << print_graph(made->graph());
  for (const auto& [batch, steps] : {std::pair(1, 40), {3, 7}, {2, 1}})
    EXPECT_LE(run_difference(*traced, *made, {at::randn({batch, steps, 64})}, 2), 1e-5);
}

}  // namespace fx::recurrent_lowering_test
