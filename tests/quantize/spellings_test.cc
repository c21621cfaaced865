// Programs that write in place, drop out nothing, index in all ways and were scripted: what is quantized of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/torchscript/import.h>
#include "tests/quantize/programs.h"
#include "tests/support/error_of.h"
#include "tests/support/short_graph.h"
#include "tests/torchscript/model_files.h"

namespace fx::spellings_test {

using testing::calibrated;
using testing::count_prefix;
using testing::error_of;
using ::testing::HasSubstr;
using testing::program_of;
using testing::Samples;

Samples random_images() {
  Samples samples;
  for (int i = 0; i < 4; ++i) samples.push_back({torch::randn({2, 3, 8, 8})});
  return samples;
}

// ── In place ─────────────────────────────────────────────────────────────────────────────────────────────────────────

class WritesItsOperand : public ::testing::TestWithParam<std::string> {};

// The convolutions around `conv - op_` are quantized as around `conv - op`.
TEST_P(WritesItsOperand, AfterALayer) {
  torch::manual_seed(3);
  const std::string call = GetParam();
  const auto body = [&](const std::string& op) {
    return "a = aten::conv2d(%x, %w, None, 1, 1)\nb = " + op + "\nc = aten::conv2d(%b, %w, None, 1, 1)\nreturn c";
  };
  std::string plain = call;
  plain.erase(plain.find("_("), 1);
  const std::vector<std::pair<std::string, torch::Tensor>> weights = {{"w", torch::randn({3, 3, 3, 3}) / 3}};
  const auto in_place = program_of(body(call), "x", weights), functional = program_of(body(plain), "x", weights);
  const Samples samples = random_images();
  const auto one = convert(*calibrated(*in_place, samples)), other = convert(*calibrated(*functional, samples));
  EXPECT_EQ(count_prefix(*one, "quantized::conv2d"), 2u) << *one;
  EXPECT_EQ(testing::largest_difference(one->run(samples[0]), other->run(samples[0])), 0);
  EXPECT_GT(compare_outputs(*in_place, *one, samples).output.sqnr_db, 25);
}

INSTANTIATE_TEST_SUITE_P(Operators, WritesItsOperand,
                         ::testing::Values("aten::silu_(%a)", "aten::relu_(%a)", "aten::hardswish_(%a)",
                                           "aten::gelu_(%a)", "aten::mish_(%a)", "aten::sigmoid_(%a)",
                                           "aten::tanh_(%a)", "aten::leaky_relu_(%a, 0.1)", "aten::elu_(%a)",
                                           "aten::hardtanh_(%a, -1, 1)", "aten::dropout_(%a, 0.5, False)",
                                           "aten::dropout_(%a, 0.0, True)", "aten::feature_dropout_(%a, 0.5, False)"),
                         [](const auto& info) {
                           std::string name = info.param.substr(6, info.param.find('(') - 6);
                           return name + (info.param.ends_with("True)") ? "training" : "");
                         });

// Others see the write: through a view, or by the name of what was written.
TEST(WritesItsOperand, ThatOthersSee) {
  torch::manual_seed(3);
  const std::vector<std::pair<std::string, torch::Tensor>> weights = {{"w", torch::randn({3, 3, 3, 3}) / 3}};
  const Samples samples = random_images();
  for (const char* rest : {"v = aten::view(%a, [2, -1])\nb = aten::silu_(%a)\ny = aten::add(%v, 1)\nreturn [y, b]",
                           "b = aten::silu_(%a)\ny = aten::conv2d(%a, %w)\nreturn [y, b]",
                           "v = aten::select.int(%a, 1, 0)\nb = aten::silu_(%v)\ny = aten::conv2d(%a, %w)\nreturn y",
                           "b = aten::add(%a, 1)\nc = aten::silu_(%a)\ny = aten::mul(%b, %c)\nreturn y",
                           "b = aten::silu_(%x)\ny = aten::add(%b, %a)\nreturn y"}) {
    const auto gm = program_of("a = aten::conv2d(%x, %w, None, 1, 1)\n" + std::string(rest), "x", weights);
    const auto int8 = convert(*calibrated(*gm, samples));
    EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 25) << rest;
  }
}

TEST(Aliases, AreQuantizedAsTheOperatorsThatTheyAre) {
  torch::manual_seed(3);
  const std::vector<std::pair<std::string, torch::Tensor>> weights = {{"w", torch::randn({3, 3, 3, 3}) / 3}};
  const Samples samples = random_images();
  const auto quantized = [&](const std::string& join, const std::string& product, const std::string& bound) {
    const auto gm = program_of("a = aten::conv2d(%x, %w, None, 1, 1)\nb = " + bound + "(%a, 0.0, 6.0)\nc = " + join +
                                   "([%b, %b], 1)\nd = aten::slice(%c, 1, 0, 3)\ne = " + product +
                                   "(%d, %b)\nf = aten::conv2d(%e, %w)\nreturn f",
                               "x", weights);
    const auto int8 = convert(*calibrated(*gm, samples));
    return std::pair(count_prefix(*int8, "quantized::"), int8->run(samples[0]).toTensor());
  };
  const auto [kernels, result] = quantized("aten::cat", "aten::mul.Tensor", "aten::clamp");
  const auto [others, same] = quantized("aten::concat", "aten::multiply.Tensor", "aten::clip");
  EXPECT_EQ(kernels, others);
  EXPECT_TRUE(result.equal(same));
}

// ── Indices ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Embeddings, IndicesOfEveryRank) {
  torch::manual_seed(3);
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{{}, {1}, {7}, {3, 5}, {2, 3, 4}, {1, 1, 1, 2}, {0}, {0, 4}}) {
    const auto gm = program_of("y = aten::embedding(%w, %x)\nreturn y", "x", {{"w", torch::randn({20, 8})}});
    const Samples samples = {{torch::randint(0, 20, sizes)}};
    for (const QuantConfig& config : {QuantConfig::dynamic(), QuantConfig::weight_only()}) {
      const auto prepared = calibrated(*gm, samples, config);
      const auto int8 = convert(*prepared);
      const bool has_kernel = (sizes.size() == 1 || sizes.size() == 2) && sizes[0] > 0;
      EXPECT_EQ(count_prefix(*int8, "quantized::embedding"), has_kernel) << sizes;
      EXPECT_EQ(int8->run(samples[0]).toTensor().sizes(), gm->run(samples[0]).toTensor().sizes());
      if (has_kernel) continue;
      EXPECT_THAT(quantization_reasons(*prepared)[0].reason, HasSubstr("the kernel wants")) << sizes;
    }
  }
}

TEST(Embeddings, BagsOfAllKinds) {
  torch::manual_seed(3);
  struct Bag {
    std::string rest;  ///< of the arguments: scale_grad_by_freq, mode, sparse, per_sample_weights, last offset, padding
    bool has_kernel;
  };
  for (const auto& [rest, has_kernel] : std::vector<Bag>{{"False, 0, False, None, False, -1", false},
                                                         {"False, 0, False, None, False, None", true},
                                                         {"False, 0, False, %s, False, None", true},
                                                         {"False, 0, False, None, True, None", true},
                                                         {"False, 0, False, None, False, 3", false},
                                                         {"False, 1, False, None, False, -1", false},
                                                         {"False, 2, False, None, False, -1", false}}) {
    const auto gm = program_of(
        "b = aten::embedding_bag.padding_idx(%w, %x, %o, " + rest + ")\ny = operator.getitem(%b, 0)\nreturn y", "x o",
        {{"w", torch::randn({20, 8})}, {"s", torch::rand({10})}});
    const Samples samples = {{torch::randint(0, 20, {10}), torch::tensor({0, 3, 3, 10})}};
    const auto prepared = calibrated(*gm, samples, QuantConfig::dynamic());
    for (const QuantBackend backend : {QuantBackend::automatic, QuantBackend::reference}) {
      const auto int8 = convert(*prepared, {.backend = backend});
      const bool lowered = has_kernel && backend != QuantBackend::reference;
      EXPECT_EQ(count_prefix(*int8, "quantized::embedding_bag"), lowered) << rest;
      EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 35) << rest;
    }
  }
}

// ── Cells ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Cells, AreQuantizedWithTheirBiases) {
  torch::manual_seed(3);
  for (const bool lstm : {false, true}) {
    for (const bool biased : {false, true}) {
      const std::string biases = biased ? ", %bi, %bh)" : ")";
      const std::string body =
          lstm ? "l = aten::lstm_cell(%x, [%h, %c], %wi, %wh" + biases +
                     "\ny = operator.getitem(%l, 0)\nz = operator.getitem(%l, 1)\nreturn [y, z]"
               : "y = aten::gru_cell(%x, %h, %wi, %wh" + biases + "\nz = aten::add(%y, %c)\nreturn z";
      const std::int64_t gates = lstm ? 4 : 3;
      const auto gm = program_of(body, "x h c",
                                 {{"wi", torch::randn({gates * 5, 6}) / 3},
                                  {"wh", torch::randn({gates * 5, 5}) / 3},
                                  {"bi", torch::randn({gates * 5})},
                                  {"bh", torch::randn({gates * 5})}});
      const Samples samples = {{torch::randn({3, 6}), torch::randn({3, 5}), torch::randn({3, 5})}};
      const auto prepared = calibrated(*gm, samples, QuantConfig::dynamic());
      for (const QuantBackend backend : available_quant_backends()) {
        const auto int8 = convert(*prepared, {.backend = backend});
        EXPECT_EQ(count_prefix(*int8, "quantized::quantized_"), biased) << *int8;
        EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 30);
      }
      const auto reference = convert(*prepared, {.backend = QuantBackend::reference});
      EXPECT_GT(compare_outputs(*gm, *reference, samples).output.sqnr_db, 30);
    }
  }
}

// ── Buffers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// A program that adds to its own buffer, run with gradients while it is calibrated: they leave no trace.
TEST(Buffers, ThatCalibrationWrites) {
  torch::manual_seed(3);
  const auto gm = program_of(
      "l = aten::linear(%x, %w)\nm = aten::mean.dim(%l, [0])\nn = aten::add_.Tensor(%s, %m)\n"
      "y = aten::add(%l, 1)\nreturn y",
      "x", {{"w", torch::randn({4, 4}).requires_grad_()}, {"s", torch::zeros({4})}});
  const Samples samples = {{torch::randn({2, 4})}};
  const auto int8 = convert(*calibrated(*gm, samples));
  for (const auto& each : int8->named_parameters()) EXPECT_NE(each.key(), "s");
  EXPECT_FALSE(int8->attribute("s").requires_grad());
  EXPECT_TRUE(torch::equal(int8->attribute("s"), torch::zeros({4})));
  int8->run(samples[0]);
}

// ── Scripted modules ─────────────────────────────────────────────────────────────────────────────────────────────────

/// The model that Python scripted under this name, and inputs for it.
struct Scripted {
  std::shared_ptr<GraphModule> module;
  std::vector<c10::IValue> inputs;
};

Scripted scripted_model(const std::string& name) {
  for (const testing::json& entry : testing::entries(/*loadable=*/true)) {
    const std::string file = entry["file"];
    if (file != name + ".scripted.pt" && file != name + ".script.pt" && file != name + ".pt") continue;
    return {load(testing::models_folder() + "/" + file), testing::read_example(entry).inputs};
  }
  return {};
}

class ScriptedModules : public ::testing::TestWithParam<std::string> {};

TEST_P(ScriptedModules, AreQuantized) {
  const Scripted model = scripted_model(GetParam());
  ASSERT_TRUE(model.module) << "the test models have no " << GetParam();
  const bool recurrent = GetParam() != "conv_instance_norm";
  const Samples samples = {model.inputs, model.inputs};
  const auto prepared =
      calibrated(*model.module, samples, recurrent ? QuantConfig::dynamic() : QuantConfig::defaults());
  for (const QuantBackend backend : available_quant_backends()) {
    const auto int8 = convert(*prepared, {.backend = backend});
    EXPECT_EQ(count_prefix(*int8, recurrent ? "aten::quantized_" : "quantized::instance_norm"), 1u) << *int8;
    EXPECT_GT(compare_outputs(*model.module, *int8, samples).output.sqnr_db, 25);
  }
}

INSTANTIATE_TEST_SUITE_P(Leaves, ScriptedModules, ::testing::Values("lstm", "lstm_state", "gru", "conv_instance_norm"),
                         [](const auto& info) { return info.param; });

// ── Bias correction ──────────────────────────────────────────────────────────────────────────────────────────────────

// What a path's or a type's settings say of the weight counts.
TEST(BiasCorrectionSettings, ByPathAndByType) {
  torch::manual_seed(3);
  const auto gm = std::make_shared<GraphModule>(
      GraphModule::Attributes{{"m.w", torch::randn({6, 8}) * torch::logspace(-2, 1, 6).unsqueeze(1)},
                              {"m.b", torch::zeros({6})}},
      testing::graph_of(
          "w = get_attr[target=m.w]()\nb = get_attr[target=m.b]()\ny = aten::linear(%x, %w, %b)\nreturn y", "x"));
  Samples samples;
  for (int i = 0; i < 8; ++i) samples.push_back({torch::rand({16, 8})});
  const QuantSettings coarse = {.weight = {.dtype = DType::qint8, .symmetric = true, .per_channel = false}};
  std::vector<QuantConfig> configs(3, QuantConfig::defaults());
  configs[0].nodes.push_back({"y", coarse});
  configs[1].paths.push_back({"m", coarse});
  configs[2].types.push_back({"aten::linear", coarse});
  std::vector<torch::Tensor> biases;
  for (const QuantConfig& config : configs) {
    const auto prepared = calibrated(*gm, samples, config);
    ASSERT_EQ(correct_bias(*prepared, samples), 1u);
    biases.push_back(prepared->attribute("m.bias_corrected"));
    EXPECT_GT(biases.back().abs().max().item<double>(), 1e-4);
    EXPECT_THAT(error_of([&] { correct_bias(*prepared, samples); }), HasSubstr("already"));
  }
  EXPECT_TRUE(torch::equal(biases[0], biases[1]));
  EXPECT_TRUE(torch::equal(biases[0], biases[2]));
}

// ── Agreement ────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Agreement, OfImagesGoesByChannel) {
  torch::manual_seed(3);
  const auto gm = program_of("y = aten::upsample_nearest2d(%x, [8, 8])\nreturn y", "x", {});
  const auto other =
      program_of("z = aten::upsample_nearest2d(%x, [8, 8])\ny = aten::mul(%z, 0.999)\nreturn y", "x", {});
  const Samples samples = {{torch::randn({2, 5, 4, 4})}};
  EXPECT_EQ(compare_outputs(*gm, *other, samples).agreement, 1);
  const auto flipped =
      program_of("z = aten::flip(%x, [1])\ny = aten::upsample_nearest2d(%z, [8, 8])\nreturn y", "x", {});
  EXPECT_LT(compare_outputs(*gm, *flipped, samples).agreement, 0.6);
}

}  // namespace fx::spellings_test
