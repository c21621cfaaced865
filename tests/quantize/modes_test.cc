// Training, dynamic and weight-only quantization, observers, equalization, bias correction, configurations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <filesystem>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/rewriter/quantize/equalize.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/histogram.h>
#include <fxgraph/rewriter/quantize/observer.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/quantize/programs.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx::modes_test {

using testing::calibrated;
using testing::count_prefix;
using testing::error_of;
using ::testing::HasSubstr;
using testing::program_of;
using testing::Samples;

// ── Observers ────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Observers, FindPyTorchsNumbers) {
  // MinMaxObserver, quint8, affine: values from -1 to 3.
  Observer affine({.range = RangeKind::min_max}, "x");
  affine.observe(torch::tensor({-1.0, 2.0}));
  affine.observe(torch::tensor({0.5, 3.0}));
  EXPECT_FLOAT_EQ(static_cast<float>(affine.parameters().scale_value()), 4.0F / 255);
  EXPECT_EQ(affine.parameters().zero_point_value(), 64);
  // Symmetric qint8: the largest magnitude over 127.5.
  Observer symmetric({.dtype = DType::qint8, .symmetric = true, .range = RangeKind::min_max}, "x");
  symmetric.observe(torch::tensor({-1.0, 3.0}));
  EXPECT_FLOAT_EQ(static_cast<float>(symmetric.parameters().scale_value()), 3.0F / 127.5F);
  EXPECT_EQ(symmetric.parameters().zero_point_value(), 0);
  // Moving averages: 0.99 old, 0.01 new.
  Observer moving({.range = RangeKind::moving_average}, "x");
  moving.observe(torch::tensor({0.0, 1.0}));
  moving.observe(torch::tensor({0.0, 2.0}));
  EXPECT_FLOAT_EQ(static_cast<float>(moving.parameters().scale_value()), 1.01F / 255);
  // Without one bit.
  Observer reduced({.range = RangeKind::min_max, .reduce_range = true}, "x");
  reduced.observe(torch::tensor({0.0, 1.0}));
  EXPECT_FLOAT_EQ(static_cast<float>(reduced.parameters().scale_value()), 1.0F / 127);
  // A range of nothing has a scale all the same.
  Observer zero({.range = RangeKind::histogram}, "x");
  zero.observe(torch::zeros({4}));
  EXPECT_GT(zero.parameters().scale_value(), 0);
}

TEST(Observers, HistogramsCutOffWhatIsRare) {
  torch::manual_seed(2);
  torch::Tensor values = torch::randn({20000});
  values[0] = 100;
  Observer histogram({.range = RangeKind::histogram}, "x"), percentile({.range = RangeKind::percentile}, "x"),
      all({.range = RangeKind::min_max}, "x");
  for (Observer* each : {&histogram, &percentile, &all}) {
    each->observe(values);
    each->observe(values * 0.5);
  }
  EXPECT_LT(percentile.parameters().scale_value(), 15.0 / 255);
  EXPECT_LT(histogram.parameters().scale_value(), all.parameters().scale_value());
  const auto error = [&](const Observer& observer) {
    return (observer.parameters().fake_quantize(values) - values).square().slice(0, 1).sum().item<double>();
  };
  EXPECT_LT(error(percentile), error(all));
}

TEST(Observers, MergedHistogramsCountEverything) {
  torch::manual_seed(4);
  const torch::Tensor first = torch::rand({1000}), second = torch::rand({3000}) * 5 - 2;
  const Histogram one = Histogram::of(first, first.min().item<double>(), first.max().item<double>(), 2048);
  const Histogram both = Histogram::merged(one, second, second.min().item<double>(), second.max().item<double>());
  double total = 0;
  for (const double count : both.counts) total += count;
  EXPECT_NEAR(total, 4000, 1e-3);
  EXPECT_LE(both.low, second.min().item<double>());
  EXPECT_GE(both.high, second.max().item<double>() - 1e-6);
}

TEST(Observers, FakeQuantizeHasGradients) {
  FakeQuantize fake({.range = RangeKind::min_max}, "x");
  fake.train();
  fake.forward(torch::tensor({-1.0F, 1.0F}));
  fake.eval();
  const torch::Tensor x = torch::tensor({0.3F, 5.0F}, torch::requires_grad());
  fake.forward(x).sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::tensor({1.0F, 0.0F})));  // nothing outside the range
  EXPECT_NEAR(fake.forward(x)[0].item<float>(), 0.3, 1.0 / 255);
}

// ── Training ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Which quarter of the image is bright.
struct SmallNet : torch::nn::Module {
  torch::nn::Conv2d first{nullptr}, second{nullptr};
  torch::nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear fc{nullptr};
  SmallNet() {
    using torch::nn::Conv2dOptions;
    first = register_module("first", torch::nn::Conv2d(Conv2dOptions(1, 8, 3).padding(1)));
    norm1 = register_module("norm1", torch::nn::BatchNorm2d(8));
    second = register_module("second", torch::nn::Conv2d(Conv2dOptions(8, 8, 3).padding(1).stride(2).bias(false)));
    norm2 = register_module("norm2", torch::nn::BatchNorm2d(8));
    fc = register_module("fc", torch::nn::Linear(8 * 16, 4));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(norm1(first(x)));
    x = torch::relu(norm2(second(x)));
    return fc(x.flatten(1));
  }
};

std::pair<torch::Tensor, torch::Tensor> quarters(std::int64_t count) {
  const torch::Tensor labels = torch::randint(0, 4, {count});
  torch::Tensor images = torch::randn({count, 1, 8, 8});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t quarter = labels[i].item<std::int64_t>();
    images[i][0].slice(0, quarter / 2 * 4, quarter / 2 * 4 + 4).slice(1, quarter % 2 * 4, quarter % 2 * 4 + 4) += 0.8;
  }
  return {images, labels};
}

template <typename Forward>
double accuracy(const torch::Tensor& images, const torch::Tensor& labels, Forward&& forward) {
  const torch::NoGradGuard no_grad;
  return forward(images).argmax(1).eq(labels).to(torch::kDouble).mean().template item<double>();
}

TEST(Training, ReachesTheFloatAccuracy) {
  torch::manual_seed(1);
  const auto [images, labels] = quarters(512);
  const auto [test_images, test_labels] = quarters(1000);
  const auto train = [&, &images = images, &labels = labels](auto&& parameters, auto&& forward, double rate,
                                                             int epochs) {
    torch::optim::Adam adam(parameters, torch::optim::AdamOptions(rate));
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (std::int64_t i = 0; i < images.size(0); i += 64) {
        adam.zero_grad();
        torch::nll_loss(forward(images.slice(0, i, i + 64)).log_softmax(1), labels.slice(0, i, i + 64)).backward();
        adam.step();
      }
    }
  };
  auto net = std::make_shared<SmallNet>();
  net->train();
  train(
      net->parameters(), [&](const torch::Tensor& x) { return net->forward(x); }, 3e-3, 6);
  net->eval();
  const double float_accuracy =
      accuracy(test_images, test_labels, [&](const torch::Tensor& x) { return net->forward(x); });
  ASSERT_GT(float_accuracy, 0.8);

  const auto gm = symbolic_trace(net, {images.slice(0, 0, 4)});
  auto prepared = prepare_qat(*gm, QuantConfig::training(), {images.slice(0, 0, 64)});
  EXPECT_TRUE(prepared->is_training());
  std::size_t trained = 0;
  for (const torch::Tensor& parameter : prepared->parameters()) trained += parameter.requires_grad();
  EXPECT_EQ(trained, 9U) << print_graph(prepared->graph());
  train(
      prepared->parameters(), [&](const torch::Tensor& x) { return prepared->forward(x); }, 3e-4, 2);
  prepared->eval();
  const double fake_accuracy =
      accuracy(test_images, test_labels, [&](const torch::Tensor& x) { return prepared->forward(x); });
  const auto int8 = convert(*prepared);
  EXPECT_EQ(count_prefix(*int8, "quantized::conv2d_relu"), 2U) << print_graph(int8->graph());
  EXPECT_EQ(count_prefix(*int8, "quantized::linear"), 1U);
  const double accuracy8 = accuracy(test_images, test_labels, [&](const torch::Tensor& x) { return int8->forward(x); });
  EXPECT_GT(accuracy8, float_accuracy - 0.01);
  EXPECT_NEAR(accuracy8, fake_accuracy, 0.01);
  // What was trained is what is computed: the fake quantized program in evaluation is the reference form.
  const auto reference = convert(*prepared, {.backend = QuantBackend::reference});
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = test_images.slice(0, 0, 32), expected = prepared->forward(x);
  EXPECT_LT((reference->forward(x) - expected).abs().mean().item<double>(),
            0.02 * expected.abs().mean().item<double>());
}

TEST(Training, BatchNormLearnsAndIsFolded) {
  torch::manual_seed(6);
  auto net = std::make_shared<SmallNet>();
  net->eval();
  const torch::Tensor x = torch::randn({16, 1, 8, 8}) * 2 + 1;
  const auto prepared = prepare_qat(*symbolic_trace(net, {x}), QuantConfig::training(), {x});
  const auto variance = [&] { return prepared->find_attribute("norm1.running_var").clone(); };
  const torch::Tensor before = variance();
  ASSERT_TRUE(before.defined());
  prepared->forward(x);
  EXPECT_FALSE(torch::equal(variance(), before));
  prepared->eval();
  const torch::Tensor settled = variance();
  prepared->forward(x);
  EXPECT_TRUE(torch::equal(variance(), settled));
  EXPECT_EQ(error_of([&] { prepared->clone_graph_module()->forward(x); }), "no error");
}

// ── Dynamic and weight-only ──────────────────────────────────────────────────────────────────────────────────────────

struct TextNet : torch::nn::Module {
  torch::nn::Embedding table{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::GRU gru{nullptr};
  torch::nn::Linear fc{nullptr};
  TextNet() {
    table = register_module("table", torch::nn::Embedding(20, 8));
    lstm = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(8, 6).num_layers(2).batch_first(true).bidirectional(true)));
    gru = register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(12, 5).batch_first(true)));
    fc = register_module("fc", torch::nn::Linear(5, 3));
  }
  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor states = std::get<0>(lstm(table(x)));
    return fc(std::get<0>(gru(states)));
  }
};

TEST(Dynamic, LinearRecurrentAndEmbeddingLayers) {
  torch::manual_seed(8);
  auto net = std::make_shared<TextNet>();
  net->eval();
  const torch::Tensor x = torch::randint(0, 20, {3, 7});
  const auto gm = symbolic_trace(net, {x});
  const torch::NoGradGuard no_grad;
  const torch::Tensor expected = gm->forward(x);
  const auto prepared = prepare(*gm, QuantConfig::dynamic(), {x});
  for (const QuantBackend backend : {QuantBackend::automatic, QuantBackend::reference}) {
    const auto int8 = convert(*prepared, {.backend = backend});
    if (backend == QuantBackend::automatic) {
      EXPECT_EQ(count_prefix(*int8, "quantized::linear_dynamic"), 1U) << print_graph(int8->graph());
      EXPECT_EQ(count_prefix(*int8, "aten::quantized_lstm"), 1U);
      EXPECT_EQ(count_prefix(*int8, "aten::quantized_gru"), 1U);
      EXPECT_EQ(count_prefix(*int8, "quantized::embedding_byte"), 1U);
      const testing::ScratchFolder scratch;
      const std::string file = scratch / "dynamic.pt";
      int8->save(file);
      EXPECT_TRUE(torch::equal(torch::jit::load(file).forward({x}).toTensor(), int8->forward(x)));
    }
    EXPECT_LT((int8->forward(x) - expected).abs().max().item<double>(), 0.03) << to_string(backend);
  }
}

TEST(WeightOnly, KeepsWeightsAsWholeNumbers) {
  torch::manual_seed(9);
  const auto gm = program_of("a = aten::linear(%x, %w, %b)\nb2 = aten::relu(%a)\nreturn b2", "x",
                             {{"w", torch::randn({4, 6})}, {"b", torch::randn({4})}});
  const torch::Tensor x = torch::randn({3, 6});
  const auto int8 = convert(*prepare(*gm, QuantConfig::weight_only(), {x}));
  EXPECT_EQ(count_prefix(*int8, "aten::dequantize"), 1U) << print_graph(int8->graph());
  EXPECT_LT((int8->forward(x) - gm->forward(x)).abs().max().item<double>(), 0.1);
}

// ── Equalization and bias correction ─────────────────────────────────────────────────────────────────────────────────

TEST(Equalize, ChangesRangesAndNothingElse) {
  torch::manual_seed(10);
  torch::Tensor spread = torch::randn({8, 4, 3, 3});
  for (int i = 0; i < 8; ++i) spread[i] *= std::pow(10.0, i - 4);
  torch::Tensor back = torch::randn({5, 8, 3, 3});
  for (int i = 0; i < 8; ++i) back.select(1, i) *= std::pow(10.0, 4 - i);
  const auto gm = program_of("c = aten::conv2d(%x, %w, %b)\nr = aten::relu(%c)\nd = aten::conv2d(%r, %v)\nreturn d",
                             "x", {{"w", spread}, {"b", torch::randn({8})}, {"v", back}});
  const torch::Tensor x = torch::randn({2, 4, 9, 9});
  const auto flat = quantize::flat_program(*gm, {x});
  EXPECT_EQ(quantize::equalize(*flat), 1U);
  const torch::Tensor expected = gm->forward(x);
  EXPECT_LT((flat->forward(x) - expected).abs().max().item<double>(), 1e-4 * expected.abs().max().item<double>());
  // Per tensor, only the equalized weights survive.
  Samples samples = {{x}};
  QuantConfig config = QuantConfig::defaults();
  config.global.weight.per_channel = false;
  const double plain = compare_activations(*gm, *convert(*calibrated(*gm, samples, config)), samples).output.sqnr_db;
  config.equalize = true;
  const double equalized =
      compare_activations(*gm, *convert(*calibrated(*gm, samples, config)), samples).output.sqnr_db;
  EXPECT_GT(equalized, plain + 10);
}

TEST(BiasCorrection, TakesAwayTheMeanError) {
  torch::manual_seed(12);
  QuantConfig config = QuantConfig::defaults();
  config.global.weight.per_channel = false;
  torch::Tensor weight = torch::rand({6, 16}) * 0.01 + 0.003;
  weight[0][0] = 5;  // makes the steps coarse, so that the others are rounded away
  const auto gm = program_of("a = aten::linear(%x, %w)\nreturn a", "x", {{"w", weight}});
  Samples samples;
  for (int i = 0; i < 4; ++i) samples.push_back({torch::rand({32, 16}) + 1});
  const auto error = [&](GraphModule& prepared) {
    const auto reference = convert(prepared, {.backend = QuantBackend::reference});
    return (reference->run(samples[0]).toTensor() - gm->run(samples[0]).toTensor())
        .mean(0)
        .slice(0, 1)
        .abs()
        .max()
        .item<double>();
  };
  const auto prepared = calibrated(*gm, samples, config);
  const double before = error(*prepared);
  EXPECT_EQ(correct_bias(*prepared, samples), 1U);
  for (const auto& inputs : samples) prepared->run(inputs);
  EXPECT_LT(error(*prepared), before / 2);
}

// ── Configurations ───────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Config, IsReadFromJson) {
  const QuantConfig config = parse_quant_config(R"({
    "nodes": {"add": {"mode": "float"}}, "paths": {"layer1\\..*": {"weight": {"per_channel": false}}},
    "global": {"activation": {"range": "percentile", "percentile": 99.9}}, "equalize": true})",
                                                QuantConfig::defaults());
  EXPECT_EQ(config.global.activation.range, RangeKind::percentile);
  EXPECT_TRUE(config.equalize);
  EXPECT_EQ(config.settings_for("add", "aten::add", "", "").mode, QuantMode::keep_float);
  const QuantSettings& inside = config.settings_for("conv", "aten::conv2d", "Conv2d", "layer1.0.conv");
  EXPECT_FALSE(inside.weight.per_channel);
  EXPECT_EQ(inside.activation.percentile, 99.9);
}

TEST(Config, RefusesWhatItDoesNotKnow) {
  const auto of = [](const char* text) { return error_of([&] { parse_quant_config(text, {}); }); };
  EXPECT_THAT(of("{\n  \"global\": }"), HasSubstr("2:13"));
  EXPECT_THAT(of(R"({"globl": {}})"), HasSubstr("has no 'globl'; there is global, types, paths, nodes, equalize"));
  EXPECT_THAT(of(R"({"global": {"mode": "int4"}})"), HasSubstr("there is no mode 'int4'"));
  EXPECT_THAT(of(R"({"global": {"activation": {"percentile": 120}}})"), HasSubstr("not in (0, 100]"));
  EXPECT_THAT(of(R"({"global": {"activation": {"bins": "many"}}})"), HasSubstr("of another type"));
  EXPECT_THAT(of(R"({"paths": {"(": {}}})"), HasSubstr("no regular expression"));
  EXPECT_THAT(of("[]"), HasSubstr("is no object"));
  EXPECT_THAT(error_of([] { parse_quant_backend("tpu"); }),
              HasSubstr("there is auto, fbgemm, onednn, qnnpack, reference"));
}

}  // namespace fx::modes_test
