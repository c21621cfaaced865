// What a converted program computes under every engine that may be set when it runs, and beside other layers.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/rewriter/quantize/packed.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/import.h>
#include "tests/quantize/programs.h"
#include "tests/support/scratch_folder.h"

namespace fx::engines_test {

using testing::calibrated;
using testing::count_prefix;
using testing::largest_difference;
using testing::largest_quantum;
using testing::program_of;
using testing::Samples;

bool has(QuantBackend backend) {
  const auto all = available_quant_backends();
  return std::find(all.begin(), all.end(), backend) != all.end();
}

// ── Engines ──────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Body {
  std::string name, text;
  double quanta = 2;  ///< how far kernels may be off
};
void PrintTo(const Body& each, std::ostream* out) { *out << each.name; }

std::vector<Body> bodies() {
  const auto after = [](const std::string& text) { return "c = aten::conv2d(%x, %w, %b, 1, 1)\n" + text; };
  return {
      {"clamp_around_zero", after("y = aten::hardtanh(%c, -1, 1)\nreturn y")},
      {"clamp_above", after("y = aten::clamp(%c, 0.25, 3)\nreturn y")},
      {"clamp_below", after("y = aten::clamp(%c, -3, -0.25)\nreturn y")},
      {"clamp_from", after("y = aten::clamp(%c, -0.2)\nreturn y")},
      {"clamp_to", after("y = aten::clamp(%c, None, 0.2)\nreturn y")},
      {"clamp_apart",
       after("d = aten::relu(%c)\ne = aten::add(%d, %c)\ny = aten::clamp(%d, -0.1, 0.2)\nreturn [y, e]")},
      {"clamp_twice", after("d = aten::clamp(%c, 0, 0.5)\ny = aten::clamp(%d, 0.2, 1)\nreturn y")},
      {"clamp_swapped", after("y = aten::clamp(%c, 1, -1)\nreturn y")},
      {"relu6", after("d = aten::mul(%c, 9)\ny = aten::relu6(%d)\nreturn y")},
      {"average_of_what_is_there", after("y = aten::avg_pool2d(%c, [3, 3], [2, 2], [1, 1], False, False)\nreturn y")},
      {"average_up", after("y = aten::avg_pool2d(%c, [3, 3], [2, 2], [1, 1], True)\nreturn y")},
      {"global_average", after("y = aten::adaptive_avg_pool2d(%c, [1, 1])\nreturn y")},
      {"largest", after("y = aten::max_pool2d(%c, [3, 3], [2, 2], [1, 1])\nreturn y")},
      {"sum_with_a_mean", after("m = aten::mean.dim(%c, [2, 3], True)\ny = aten::add(%c, %m)\nreturn y")},
      {"sum_with_a_row", after("m = aten::slice(%c, 2, 0, 1)\ny = aten::add(%c, %m)\nreturn y")},
      {"sum_with_one", after("m = aten::mean(%c)\ny = aten::add(%c, %m)\nreturn y")},
      {"sum_of_ones", after("m = aten::mean(%c)\ny = aten::add(%m, %m)\nreturn y")},
      {"product_with_a_mean", after("m = aten::mean.dim(%c, [2, 3], True)\ny = aten::mul(%c, %m)\nreturn y"), 6},
      {"sigmoid", after("y = aten::sigmoid(%c)\nreturn y")},
      {"tanh", after("y = aten::tanh(%c)\nreturn y")},
      {"hardsigmoid", after("y = aten::hardsigmoid(%c)\nreturn y")},
      {"hardswish", after("y = aten::hardswish(%c)\nreturn y")},
      {"leaky", after("y = aten::leaky_relu(%c, 0.2)\nreturn y")},
      {"transposed_sum",
       after("t = aten::permute(%c, [0, 2, 3, 1])\nd = aten::relu(%t)\ny = aten::add(%d, %t)\nreturn y")},
      {"largest_of_one", after("y = aten::max_pool2d(%c, [1, 1], [2, 2])\nreturn y")},
      {"average_of_one", after("y = aten::avg_pool2d(%c, [1, 1], [2, 2])\nreturn y")},
      {"sum_with_little", after("d = aten::mul(%c, 1e-07)\ne = aten::mul(%c, 3000)\nf = aten::add(%d, %e)\n"
                                "g = aten::add(%e, %d)\ny = aten::relu(%g)\nreturn [f, y]")},
      {"shuffle", after("y = aten::channel_shuffle(%c, 2)\nreturn y")},
  };
}

class Engines : public ::testing::TestWithParam<Body> {};

// qnnpack's kernels for add, clamp, pooling and the like run when the engine is set to it, whatever was packed.
TEST_P(Engines, ProgramsAreRightUnderTheirOwnEngineToo) {
  torch::manual_seed(5);
  const torch::NoGradGuard no_grad;
  const auto gm =
      program_of(GetParam().text, "x", {{"w", torch::randn({8, 3, 3, 3}) / 3}, {"b", torch::randn({8}) / 3}});
  Samples samples;
  for (int i = 0; i < 4; ++i) samples.push_back({torch::randn({2, 3, 8, 8})});
  const auto prepared = calibrated(*gm, samples, QuantConfig::defaults(QuantBackend::qnnpack));
  const auto reference = convert(*prepared, {.backend = QuantBackend::reference});
  const double quantum = largest_quantum(*reference);
  for (const QuantBackend backend : available_quant_backends()) {
    ::testing::internal::CaptureStderr();
    const auto int8 = convert(*prepared, {.backend = backend});
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::Not(::testing::HasSubstr("QNNPACK")));
    for (const auto& inputs : samples) {
      const c10::IValue expected = reference->run(inputs);
      EXPECT_LE(largest_difference(int8->run(inputs), expected), 1.01 * GetParam().quanta * quantum)
          << to_string(backend);
      const quantize::EngineScope engine(backend);
      EXPECT_LE(largest_difference(int8->run(inputs), expected), 1.01 * GetParam().quanta * quantum)
          << to_string(backend) << ", set";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Engines, ::testing::ValuesIn(bodies()),
                         [](const auto& info) { return info.param.name; });

TEST(EngineLimits, WhatAnEngineCannotSaveStaysInTheReferenceForm) {
  torch::manual_seed(5);
  for (const bool transposed : {false, true}) {
    const auto gm = program_of(
        transposed ? "y = aten::conv_transpose3d.input(%x, %w)\nreturn y" : "y = aten::conv3d(%x, %w)\nreturn y", "x",
        {{"w", torch::randn({4, 4, 2, 2, 2})}});
    const Samples samples = {{torch::randn({1, 4, 5, 5, 5})}};
    const auto prepared = calibrated(*gm, samples);
    for (const QuantBackend backend : available_quant_backends()) {
      const testing::ScratchFolder folder;
      const auto int8 = convert(*prepared, {.backend = backend});
      int8->save((folder / "int8.pt").string());
      const auto loaded = load((folder / "int8.pt").string());
      EXPECT_EQ(largest_difference(loaded->run(samples[0]), int8->run(samples[0])), 0) << to_string(backend);
      EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 30) << to_string(backend);
    }
  }
}

// ── Loading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A layer that qnnpack takes and others do not.
struct Tied {
  std::string name, call;
  std::vector<std::int64_t> weight, input;
  bool symmetric = true;
  bool dynamic = false;
};
void PrintTo(const Tied& each, std::ostream* out) { *out << each.name; }

class LoadedAgain : public ::testing::TestWithParam<Tied> {
 protected:
  std::string text() const { return "l = " + GetParam().call + "\ny = aten::relu(%l)\nreturn y"; }
  void SetUp() override {
    torch::manual_seed(5);
    gm_ = program_of(text(), "x", {{"w", torch::rand(GetParam().weight) - 0.3}});
    samples_ = {{torch::randn(GetParam().input)}, {torch::randn(GetParam().input)}};
    QuantConfig config = GetParam().dynamic ? QuantConfig::dynamic() : QuantConfig::defaults();
    config.global.weight.symmetric = GetParam().symmetric;
    prepared_ = calibrated(*gm_, samples_, config);
  }
  std::vector<QuantReason> reasons(const ConvertOptions& options) const {
    std::vector<QuantReason> layer;
    for (const QuantReason& each : quantization_reasons(*prepared_, options)) {
      if (each.node == "l") layer.push_back(each);
    }
    return layer;
  }

  std::shared_ptr<GraphModule> gm_, prepared_;
  Samples samples_;
};

// What is packed is packed anew by the engine that is set when the file is loaded.
TEST_P(LoadedAgain, WithoutANamedEngineUnderAny) {
  const torch::NoGradGuard no_grad;
  const testing::ScratchFolder folder;
  std::vector<ConvertOptions> all = {{}};
  for (const QuantBackend each : available_quant_backends()) all.push_back({.backend = each, .every_engine = true});
  for (const ConvertOptions& options : all) {
    const auto int8 = convert(*prepared_, options);
    int8->save((folder / "int8.pt").string());
    const double quantum = largest_quantum(*int8);
    for (const QuantBackend set : available_quant_backends()) {
      const quantize::EngineScope engine(set);
      const auto loaded = load((folder / "int8.pt").string());
      EXPECT_LE(largest_difference(loaded->run(samples_[0]), int8->run(samples_[0])), 1.01 * quantum + 1e-5)
          << to_string(options.backend) << " under " << to_string(set);
    }
    for (const QuantReason& each : reasons(options)) EXPECT_EQ(each.engine, "") << each.reason;
  }
}

TEST_P(LoadedAgain, WithANamedEngineUnderThatOneAndTheReasonSaysSo) {
  if (!has(QuantBackend::qnnpack) || !has(QuantBackend::onednn)) GTEST_SKIP() << "needs qnnpack and onednn";
  const torch::NoGradGuard no_grad;
  const testing::ScratchFolder folder;
  const ConvertOptions options{.backend = QuantBackend::qnnpack};
  const auto int8 = convert(*prepared_, options);
  EXPECT_EQ(count_prefix(*int8, "quantized::"), 1u);
  for (const QuantReason& each : reasons(options)) {
    EXPECT_TRUE(each.quantized);
    EXPECT_EQ(each.engine, "qnnpack");
    EXPECT_THAT(each.reason, ::testing::HasSubstr("could not load it: "));
  }
  int8->save((folder / "int8.pt").string());
  {
    const quantize::EngineScope engine(QuantBackend::qnnpack);
    EXPECT_EQ(largest_difference(load((folder / "int8.pt").string())->run(samples_[0]), int8->run(samples_[0])), 0);
  }
  const quantize::EngineScope engine(QuantBackend::onednn);
  try {
    load((folder / "int8.pt").string());
    ADD_FAILURE() << "oneDNN takes it";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("set torch.backends.quantized.engine = 'qnnpack' before"));
    EXPECT_EQ(at::globalContext().qEngine(), at::QEngine::ONEDNN);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, LoadedAgain,
    ::testing::Values(
        Tied{"more_at_the_end_1d", "aten::conv_transpose1d(%x, %w, None, 2, 1, 1)", {4, 4, 3}, {2, 4, 9}},
        Tied{"more_at_the_end_2d", "aten::conv_transpose2d.input(%x, %w, None, 2, 1, 1)", {8, 4, 3, 3}, {2, 8, 7, 7}},
        Tied{"zero_point", "aten::conv2d(%x, %w)", {8, 4, 3, 3}, {2, 4, 9, 9}, false},
        Tied{"zero_point_1d", "aten::conv1d(%x, %w)", {8, 4, 3}, {2, 4, 9}, false},
        Tied{"zero_point_of_a_matrix", "aten::linear(%x, %w)", {8, 16}, {4, 16}, false},
        Tied{"dynamic", "aten::linear(%x, %w)", {8, 16}, {4, 16}, false, true}),
    [](const auto& info) { return info.param.name; });

// oneDNN takes it and saves it; qnnpack packs it and makes results of sizes that nobody wrote.
TEST(TransposedVolumes, AreNotForEveryEngine) {
  if (!has(QuantBackend::qnnpack) || !has(QuantBackend::onednn)) GTEST_SKIP() << "needs qnnpack and onednn";
  torch::manual_seed(5);
  const auto gm =
      program_of("y = aten::conv_transpose3d.input(%x, %w)\nreturn y", "x", {{"w", torch::randn({4, 4, 2, 2, 2})}});
  const auto prepared = calibrated(*gm, {{torch::randn({1, 4, 5, 5, 5})}});
  EXPECT_EQ(count_prefix(*convert(*prepared, {.backend = QuantBackend::onednn}), "quantized::conv"), 1u);
  EXPECT_EQ(count_prefix(*convert(*prepared), "quantized::conv"), 0u);
}

TEST(EngineLimits, BiasesThatAreTooLargeForTheSums) {
  torch::manual_seed(5);
  for (const double size : {1.0, 1e3, 1e6, 1e9}) {
    const auto gm = program_of("l = aten::linear(%x, %w, %b)\ny = aten::relu(%l)\nreturn y", "x",
                               {{"w", torch::randn({4, 8})}, {"b", torch::full({4}, size)}});
    Samples samples;
    for (int i = 0; i < 4; ++i) samples.push_back({torch::randn({4, 8})});
    const auto prepared = calibrated(*gm, samples, QuantConfig::defaults(QuantBackend::qnnpack));
    for (const QuantBackend backend : available_quant_backends()) {
      const auto int8 = convert(*prepared, {.backend = backend});
      EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 30) << to_string(backend) << " " << size;
    }
  }
}

// ── Channels of transposed convolutions ──────────────────────────────────────────────────────────────────────────────

struct Channels {
  std::int64_t in, out, groups;
};
void PrintTo(const Channels& each, std::ostream* out) { *out << each.in << "_" << each.out << "_" << each.groups; }

class TransposedChannels : public ::testing::TestWithParam<Channels> {};

// Lowered or refused by name, they are right: LibTorch 2.14 packs most of them wrongly for oneDNN.
TEST_P(TransposedChannels, AreNotMixed) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(7);
  const auto [in, out, groups] = GetParam();
  for (const std::int64_t rank : {1, 2, 3}) {
    std::vector<std::int64_t> weight = {in, out / groups}, input = {2, in};
    weight.insert(weight.end(), static_cast<std::size_t>(rank), 3);
    input.insert(input.end(), static_cast<std::size_t>(rank), 4);
    const std::string overload = rank == 1 ? "1d" : std::to_string(rank) + "d.input";
    const auto gm = program_of(
        "y = aten::conv_transpose" + overload + "(%x, %w, %b, 2, 1, 0, " + std::to_string(groups) + ")\nreturn y", "x",
        {{"w", torch::randn(weight)}, {"b", torch::randn({out})}});
    const Samples samples = {{torch::randn(input)}, {torch::randn(input)}};
    const auto prepared = calibrated(*gm, samples);
    const auto reference = convert(*prepared, {.backend = QuantBackend::reference});
    const double quantum = largest_quantum(*reference);
    for (const QuantBackend backend : available_quant_backends()) {
      const auto int8 = convert(*prepared, {.backend = backend});
      for (const auto& inputs : samples)
        EXPECT_LE(largest_difference(int8->run(inputs), reference->run(inputs)), 1.01 * quantum)
            << to_string(backend) << ", rank " << rank;
      const bool lowered = count_prefix(*int8, "quantized::conv_transpose") == 1;
      if (in == out && rank < 3) {
        EXPECT_TRUE(lowered) << to_string(backend) << ", rank " << rank;
      }
      if (lowered || rank == 3) continue;
      std::string reasons;
      for (const QuantReason& each : quantization_reasons(*prepared, {.backend = backend})) reasons += each.reason;
      EXPECT_THAT(reasons, ::testing::HasSubstr("packs the weight of a transposed convolution wrongly"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, TransposedChannels,
                         ::testing::Values(Channels{1, 5, 1}, Channels{5, 1, 1}, Channels{2, 3, 1}, Channels{6, 4, 1},
                                           Channels{4, 6, 2}, Channels{9, 6, 3}, Channels{16, 8, 1}, Channels{8, 8, 1},
                                           Channels{8, 8, 2}, Channels{6, 6, 6}));

// ── Types ────────────────────────────────────────────────────────────────────────────────────────────────────────────

// Settings of one node may give a value a type that its readers' kernels do not take.
TEST(EngineTypes, ValuesOfTwoTypesInOneProgram) {
  torch::manual_seed(6);
  const auto gm = program_of(
      "a = aten::conv2d(%x, %w, None, 1, 1)\nb = aten::relu(%a)\nc = aten::conv2d(%b, %w, None, 1, 1)\n"
      "d = aten::add(%c, %b)\ne = aten::max_pool2d(%d, [2, 2])\nf = aten::cat([%e, %e], 1)\ny = "
      "aten::sigmoid(%f)\nreturn y",
      "x", {{"w", torch::randn({3, 3, 3, 3}) / 3}});
  Samples samples;
  for (int i = 0; i < 4; ++i) samples.push_back({torch::randn({2, 3, 8, 8})});
  for (const char* node : {"x", "a", "b", "c", "d", "e", "f", "y"}) {
    QuantConfig config = QuantConfig::defaults();
    config.nodes.push_back({node, {.activation = {.dtype = DType::qint8}}});
    const auto prepared = calibrated(*gm, samples, config);
    for (const QuantBackend backend : available_quant_backends()) {
      const auto int8 = convert(*prepared, {.backend = backend});
      EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 25) << node << " " << to_string(backend);
    }
  }
}

// ── Layers that oneDNN takes for each other ──────────────────────────────────────────────────────────────────────────

struct Layer {
  std::string name, call;
  std::vector<std::int64_t> weight, input;
};
void PrintTo(const Layer& each, std::ostream* out) { *out << each.name; }

class SameLayerTwice : public ::testing::TestWithParam<Layer> {};

// One weight on inputs that have the same scale and other zero points: x, -x, 1 - x.
TEST_P(SameLayerTwice, EachWithItsOwnZeroPoints) {
  const torch::NoGradGuard no_grad;
  const Layer& layer = GetParam();
  for (const RangeKind range : {RangeKind::min_max, RangeKind::histogram}) {
    for (int seed = 0; seed < 4; ++seed) {
      torch::manual_seed(seed);
      const auto gm = program_of("m = aten::neg(%x)\np = aten::mul(%x, -1)\na = " + layer.call +
                                     "(%x, %w)\nb = " + layer.call + "(%m, %w)\nc = " + layer.call +
                                     "(%p, %w)\nd = aten::relu(%b)\n"
                                     "e = " +
                                     layer.call + "(%z, %w)\nreturn [a, c, d, e]",
                                 "x z", {{"w", torch::randn(layer.weight)}});
      const torch::Tensor x = torch::rand(layer.input) - 0.3;
      const Samples samples = {{x, -x}, {x, -x}};
      QuantConfig config = QuantConfig::defaults();
      config.global.activation.range = range;
      const auto prepared = calibrated(*gm, samples, config);
      const auto reference = convert(*prepared, {.backend = QuantBackend::reference});
      const double quantum = largest_quantum(*reference);
      for (const QuantBackend backend : available_quant_backends()) {
        const auto int8 = convert(*prepared, {.backend = backend});
        for (int run = 0; run < 2; ++run)
          EXPECT_LE(largest_difference(int8->run(samples[0]), reference->run(samples[0])), 2.01 * quantum)
              << to_string(backend) << ", seed " << seed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, SameLayerTwice,
    ::testing::Values(Layer{"linear", "aten::linear", {8, 16}, {4, 16}},
                      Layer{"linear_of_sequences", "aten::linear", {8, 16}, {2, 3, 16}},
                      Layer{"conv1d", "aten::conv1d", {8, 4, 3}, {2, 4, 9}},
                      Layer{"conv2d", "aten::conv2d", {8, 4, 3, 3}, {2, 4, 9, 9}},
                      Layer{"conv3d", "aten::conv3d", {8, 4, 2, 2, 2}, {1, 4, 5, 5, 5}},
                      Layer{"transposed", "aten::conv_transpose2d.input", {4, 8, 3, 3}, {2, 4, 7, 7}}),
    [](const auto& info) { return info.param.name; });

// The cache is the process's: a second program with the same weights.
TEST(SameLayerInTwoPrograms, EachWithItsOwnZeroPoints) {
  if (!has(QuantBackend::onednn)) return;
  const torch::NoGradGuard no_grad;
  torch::manual_seed(9);
  const auto gm = program_of("y = aten::linear(%x, %w)\nreturn y", "x", {{"w", torch::randn({8, 16})}});
  const torch::Tensor x = torch::rand({4, 16}) - 0.3;
  std::vector<std::shared_ptr<GraphModule>> made;
  QuantConfig config = QuantConfig::defaults();
  config.global.activation.range = RangeKind::min_max;
  for (const double sign : {1.0, -1.0})
    made.push_back(convert(*calibrated(*gm, {{x * sign}}, config), {.backend = QuantBackend::onednn}));
  for (int run = 0; run < 2; ++run) {
    for (int i = 0; i < 2; ++i) {
      const Samples samples = {{x * (i ? -1.0 : 1.0)}};
      EXPECT_GT(compare_outputs(*gm, *made[i], samples).output.sqnr_db, 30) << i;
    }
  }
}

}  // namespace fx::engines_test
