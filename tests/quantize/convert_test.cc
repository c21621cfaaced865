// Whole programs: what is quantized and why not the rest, hostile programs, saving and loading, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <filesystem>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/rewriter/quantize/keep_float.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/quantize/programs.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx::convert_test {

using testing::calibrated;
using testing::count_prefix;
using testing::error_of;
using ::testing::HasSubstr;
using testing::program_of;
using testing::Samples;

/// Convolution, norm, relu, a residual sum, pooling and a linear layer.
struct Net : torch::nn::Module {
  torch::nn::Conv2d first{nullptr}, second{nullptr};
  torch::nn::BatchNorm2d norm{nullptr}, norm2{nullptr};
  torch::nn::Linear fc{nullptr};
  Net() {
    using torch::nn::Conv2dOptions;
    first = register_module("first", torch::nn::Conv2d(Conv2dOptions(3, 8, 3).padding(1)));
    norm = register_module("norm", torch::nn::BatchNorm2d(8));
    second = register_module("second", torch::nn::Conv2d(Conv2dOptions(8, 8, 3).padding(1).bias(false)));
    norm2 = register_module("norm2", torch::nn::BatchNorm2d(8));
    fc = register_module("fc", torch::nn::Linear(8, 5));
  }
  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor a = torch::relu(norm(first(x)));
    const torch::Tensor b = torch::relu(norm2(second(a)) + a);
    return fc(torch::adaptive_avg_pool2d(b, {1, 1}).flatten(1));
  }
};

Samples images(int count = 6) {
  Samples samples;
  for (int i = 0; i < count; ++i) samples.push_back({torch::randn({2, 3, 12, 12})});
  return samples;
}

std::shared_ptr<GraphModule> traced_net() {
  torch::manual_seed(3);
  auto net = std::make_shared<Net>();
  {
    const torch::NoGradGuard no_grad;
    for (auto& buffer : net->named_buffers())
      if (buffer.value().is_floating_point()) buffer.value().uniform_(0.5, 1.5);
  }
  net->eval();
  return symbolic_trace(net, {torch::rand({2, 3, 12, 12})});
}

const std::string& reason_of(const std::vector<QuantReason>& reasons, const std::string& node) {
  for (const QuantReason& each : reasons)
    if (each.node == node) return each.reason;
  static const std::string kNone = "no such node";
  return kNone;
}

TEST(Convert, QuantizesALittleResidualNetWhole) {
  const auto gm = traced_net();
  const Samples samples = images();
  const auto prepared = calibrated(*gm, samples);
  for (const QuantBackend backend : available_quant_backends()) {
    const auto int8 = convert(*prepared, {.backend = backend});
    EXPECT_EQ(count_prefix(*int8, "quantized::conv2d"), 2U) << print_graph(int8->graph());
    EXPECT_EQ(count_prefix(*int8, "quantized::add_relu"), 1U);
    EXPECT_EQ(count_prefix(*int8, "quantized::linear"), 1U);
    EXPECT_EQ(count_prefix(*int8, "aten::quantize_per_tensor"), 1U) << print_graph(int8->graph());
    EXPECT_EQ(count_prefix(*int8, "aten::dequantize"), 1U) << print_graph(int8->graph());
    EXPECT_EQ(int8->parameters().size(), 0U);
    const ActivationComparison comparison = compare_activations(*gm, *int8, samples);
    EXPECT_GT(comparison.output.sqnr_db, 25) << comparison;
    EXPECT_GE(comparison.nodes.size(), 5U) << comparison << print_graph(int8->graph());
  }
}

TEST(Convert, WhatItMakesIsSavedAndLoaded) {
  const auto gm = traced_net();
  const Samples samples = images(2);
  const auto int8 = convert(*calibrated(*gm, samples));
  const testing::ScratchFolder scratch;
  const std::string file = scratch / "int8.pt";
  int8->save(file);
  torch::jit::Module script = torch::jit::load(file);
  const auto again = load(file);
  for (const auto& inputs : samples) {
    const torch::Tensor expected = int8->run(inputs).toTensor();
    EXPECT_TRUE(torch::equal(expected, script.forward(inputs).toTensor()));
    EXPECT_TRUE(torch::equal(expected, again->run(inputs).toTensor()));
    EXPECT_TRUE(torch::equal(expected, int8->clone_graph_module()->run(inputs).toTensor()));
  }
  EXPECT_EQ(count_prefix(*again, "quantized::conv2d"), 2U);
}

TEST(Convert, KeepsFloatWhatItIsToldTo) {
  const auto gm = traced_net();
  const Samples samples = images(2);
  QuantConfig config = QuantConfig::defaults();
  config.keep_float_paths({"second"});
  const auto prepared = calibrated(*gm, samples, config);
  const auto int8 = convert(*prepared);
  EXPECT_EQ(count_prefix(*int8, "aten::conv2d"), 1U) << print_graph(int8->graph());
  EXPECT_EQ(count_prefix(*int8, "quantized::conv2d"), 1U);
  EXPECT_EQ(reason_of(quantization_reasons(*prepared), "second"), "the configuration keeps it in float");
  const auto later = convert(*calibrated(*gm, samples), {.keep_float = {"second", "fc"}});
  EXPECT_EQ(count_prefix(*later, "quantized::conv2d"), 1U);
  EXPECT_EQ(count_prefix(*later, "quantized::linear"), 0U);
  const auto sum = convert(*calibrated(*gm, samples), {.keep_float = {"add"}});
  EXPECT_EQ(count_prefix(*sum, "quantized::add"), 0U) << print_graph(sum->graph());
  EXPECT_EQ(count_prefix(*sum, "quantized::conv2d"), 2U);
  config.types.push_back({"Linear", QuantSettings::keep_float()});
  EXPECT_EQ(count_prefix(*convert(*calibrated(*gm, samples, config)), "quantized::linear"), 0U);
}

TEST(Convert, FindsTheLayersThatMustStayFloat) {
  torch::manual_seed(5);
  // The first weight has one enormous element: rounded per tensor, the others vanish.
  torch::Tensor spoilt = torch::randn({8, 8}) * 0.1;
  spoilt[0][0] = 1000;
  const auto gm = program_of("a = aten::linear(%x, %w)\nb = aten::tanh(%a)\nc = aten::linear(%b, %v)\nreturn c", "x",
                             {{"w", spoilt}, {"v", torch::randn({8, 8})}});
  Samples samples;
  for (int i = 0; i < 8; ++i) samples.push_back({torch::randn({4, 8})});
  QuantConfig config = QuantConfig::defaults();
  config.global.weight.per_channel = false;
  const auto prepared = calibrated(*gm, samples, config);
  const KeptFloat kept = keep_float_for(*prepared, *gm, samples, {.min_sqnr_db = 30});
  EXPECT_THAT(kept.nodes, ::testing::Contains("a"));
  EXPECT_LT(kept.nodes.size(), kept.layers);
  EXPECT_GT(kept.sqnr_db, 30);
  EXPECT_THAT(error_of([&] { keep_float_for(*prepared, *gm, {}, {.min_sqnr_db = 30}); }), HasSubstr("no samples"));
}

// ── Hostile programs ─────────────────────────────────────────────────────────────────────────────────────────────────

struct Hostile {
  std::string name, body;
  std::string node;    ///< whose reason is asked for
  std::string reason;  ///< part of it; empty: it is quantized
};
void PrintTo(const Hostile& each, std::ostream* out) { *out << each.name; }

class HostilePrograms : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostilePrograms, AreRefusedOrRight) {
  torch::manual_seed(11);
  const torch::NoGradGuard no_grad;
  const auto gm = program_of(GetParam().body, "x",
                             {{"w", torch::randn({6, 6})}, {"v", torch::randn({6, 6})}, {"s", torch::randn({4, 6})}});
  const auto fresh = [] { return std::vector<c10::IValue>{torch::randn({4, 6})}; };
  Samples samples;
  for (int i = 0; i < 6; ++i) samples.push_back(fresh());
  const auto prepared = prepare(*gm, QuantConfig::defaults(), {samples[0][0].toTensor().clone()});
  for (const auto& inputs : samples) prepared->run({inputs[0].toTensor().clone()});
  const std::vector<QuantReason> reasons = quantization_reasons(*prepared);
  if (GetParam().reason.empty()) {
    EXPECT_EQ(reason_of(reasons, GetParam().node), "");
  } else {
    EXPECT_THAT(reason_of(reasons, GetParam().node), HasSubstr(GetParam().reason));
  }
  // Right: near the float program, what is written included. The state of both starts alike.
  const auto int8 = convert(*prepared);
  for (const auto& inputs : samples) {
    const torch::Tensor a = inputs[0].toTensor().clone(), b = a.clone();
    const auto reference = gm->clone_graph_module(), quantized = int8->clone_graph_module();
    const c10::IValue x = reference->run({a}), y = quantized->run({b});
    EXPECT_LT(testing::largest_difference(x, y), std::max(0.3, 3 * testing::largest_quantum(*int8)))
        << print_graph(int8->graph());
    EXPECT_LT((a - b).abs().max().item<double>(), 0.3) << "what it does to its input\n" << print_graph(int8->graph());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, HostilePrograms,
    ::testing::Values(
        Hostile{"write_to_input", "a = aten::add_.Tensor(%x, %s)\nb = aten::linear(%a, %w)\nreturn b", "a",
                "no quantized kernel"},
        Hostile{"view_before_write",
                "v2 = aten::view(%x, [4, 6])\na = aten::mul_.Scalar(%x, 0.5)\nb = aten::linear(%v2, %w)\nreturn b", "b",
                "the program writes to"},
        Hostile{"input_read_before_write", "b = aten::linear(%x, %w)\na = aten::mul_.Scalar(%x, 0.5)\nreturn b", "b",
                "the program writes to"},
        Hostile{"write_to_weight", "a = aten::mul_.Scalar(%w, 0.5)\nb = aten::linear(%x, %w)\nreturn b", "b",
                "the program writes to"},
        Hostile{"write_through_view",
                "a = aten::linear(%x, %w)\nv2 = aten::view(%a, [6, 4])\nc = aten::relu_(%v2)\nd = aten::linear(%a, "
                "%v)\nreturn d",
                "a", "the program writes to"},
        Hostile{"read_before_write",
                "a = aten::linear(%x, %w)\nb = aten::add.Tensor(%a, %s)\nc = aten::relu_(%a)\nd = aten::linear(%c, "
                "%v)\nreturn (%b, %d)",
                "a", ""},
        Hostile{"read_after_write", "a = aten::linear(%x, %w)\nc = aten::relu_(%a)\nd = aten::linear(%a, %v)\nreturn d",
                "a", ""},
        Hostile{"returned_too",
                "a = aten::linear(%x, %w)\nb = aten::relu(%a)\nc = aten::linear(%b, %v)\nreturn (%a, %b, %c)", "b", ""},
        Hostile{"several_users",
                "a = aten::linear(%x, %w)\nb = aten::relu(%a)\nc = aten::sigmoid(%a)\nd = aten::add.Tensor(%b, "
                "%c)\nreturn d",
                "d", ""},
        Hostile{"shared_weight", "a = aten::linear(%x, %w)\nb = aten::linear(%a, %w)\nreturn b", "b", ""},
        Hostile{"computed_weight", "t = aten::mul.Tensor(%w, %v)\na = aten::linear(%x, %t)\nreturn a", "a",
                "its weight is computed"},
        Hostile{"double_precision",
                "d = aten::to.dtype(%x, torch.float64)\na = aten::add.Tensor(%d, %d)\nb = aten::to.dtype(%a, "
                "torch.float32)\nreturn b",
                "a", "not a float32"},
        Hostile{"alpha", "a = aten::add.Tensor(%x, %s, alpha=2)\nreturn a", "a", "without alpha"},
        Hostile{"plus_number", "a = aten::add.Tensor(%x, 3)\nb = aten::linear(%a, %w)\nreturn b", "a", ""},
        Hostile{"plus_computed_number",
                "n = aten::size.int(%x, 0)\na = aten::add.Scalar(%x, %n)\nb = aten::linear(%a, %w)\nreturn b", "a",
                "operand is computed"},
        Hostile{"exp_between",
                "a = aten::linear(%x, %w)\nt = aten::tanh(%a)\nb = aten::exp(%t)\nc = aten::linear(%b, %v)\nreturn c",
                "b", "no quantized kernel for aten::exp"},
        Hostile{"out_variant", "a = aten::linear(%x, %w)\nb = aten::sigmoid.out(%a, out=%s)\nreturn b", "b",
                "writes to its operand"},
        Hostile{"nothing", "return x", "x", "no such node"},
        Hostile{"pool_alone", "a = aten::unsqueeze(%x, 0)\nb = aten::max_pool1d(%a, [2])\nreturn b", "b",
                "nothing beside it is quantized"},
        Hostile{"relu_of_clamp_above", "a = aten::linear(%x, %w)\nb = aten::clamp(%a, 0.25, 0.5)\nreturn b", "b", ""},
        Hostile{
            "detached",
            "a = aten::linear(%x, %w)\nb = aten::detach(%a)\nc = aten::clone(%b)\nd = aten::linear(%c, %v)\nreturn d",
            "d", ""},
        Hostile{"dict_returned", "a = aten::linear(%x, %w)\nreturn [%a, %x]", "a", ""}),
    [](const auto& info) { return info.param.name; });

// ── Refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Prepare, RefusesNamesThatAreNotThere) {
  const auto gm = traced_net();
  const auto with = [&](auto change) {
    QuantConfig config = QuantConfig::defaults();
    change(config);
    return error_of([&] { prepare(*gm, config, {torch::rand({2, 3, 12, 12})}); });
  };
  EXPECT_THAT(with([](QuantConfig& c) { c.keep_float_nodes({"third"}); }), HasSubstr("the node 'third'"));
  EXPECT_THAT(with([](QuantConfig& c) { c.keep_float_paths({"layer9.*"}); }), HasSubstr("'layer9.*' fits no module"));
  EXPECT_THAT(with([](QuantConfig& c) { c.keep_float_paths({"("}); }), HasSubstr("no regular expression"));
  EXPECT_THAT(with([](QuantConfig& c) { c.types.push_back({"Conv7d", {}}); }), HasSubstr("the type 'Conv7d'"));
}

TEST(Prepare, RefusesWhatDoesNotRun) {
  const auto gm = traced_net();
  EXPECT_NE(error_of([&] { prepare(*gm, QuantConfig::defaults(), {torch::rand({2, 4, 12, 12})}); }), "no error");
}

TEST(Convert, RefusesWhatWasNotPreparedOrNotObserved) {
  const auto gm = traced_net();
  EXPECT_THAT(error_of([&] { convert(*gm); }), HasSubstr("call fx::prepare first"));
  const auto prepared = prepare(*gm, QuantConfig::defaults(), {torch::rand({2, 3, 12, 12})});
  EXPECT_THAT(error_of([&] { convert(*prepared); }), HasSubstr("was seen: run the prepared program on samples"));
  torch::Tensor spoilt = torch::rand({2, 3, 12, 12});
  spoilt[0][0][0][0] = NAN;
  EXPECT_THAT(error_of([&] { prepared->run({spoilt}); }), HasSubstr("is not finite"));
}

TEST(Convert, ModulesAndProgramStayAsTheyWere) {
  const auto gm = traced_net();
  const std::string before = print_graph(gm->graph());
  const Samples samples = images(1);
  const torch::Tensor expected = gm->run(samples[0]).toTensor();
  const auto prepared = calibrated(*gm, samples);
  EXPECT_LT((prepared->run(samples[0]).toTensor() - expected).abs().max().item<double>(), 1e-5);
  convert(*prepared);
  EXPECT_EQ(print_graph(gm->graph()), before);
  EXPECT_TRUE(torch::equal(gm->run(samples[0]).toTensor(), expected));
}

}  // namespace fx::convert_test
