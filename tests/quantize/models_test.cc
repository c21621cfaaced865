// Traced C++ models of many kinds: what is quantized, how near the results are, and that inputs of other sizes, layouts
// and types than the samples are right or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/quantize/programs.h"
#include "tests/support/error_of.h"

namespace fx::models_test {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using testing::calibrated;
using testing::count_prefix;
using testing::Samples;

/// A module of layers by name, and how they are called.
struct Model : nn::Module {
  std::function<torch::Tensor(Model&, torch::Tensor)> call;
  torch::Tensor forward(torch::Tensor x) { return call(*this, x); }
  torch::Tensor operator()(const std::string& name, const torch::Tensor& x) {
    const auto layer = named_children()[name];
    if (auto* conv = layer->as<nn::Conv2d>()) return conv->forward(x);
    if (auto* conv = layer->as<nn::Conv1d>()) return conv->forward(x);
    if (auto* conv = layer->as<nn::Conv3d>()) return conv->forward(x);
    if (auto* conv = layer->as<nn::ConvTranspose2d>()) return conv->forward(x);
    if (auto* norm = layer->as<nn::BatchNorm1d>()) return norm->forward(x);
    if (auto* norm = layer->as<nn::LayerNorm>()) return norm->forward(x);
    return layer->as<nn::Linear>()->forward(x);
  }
};

struct Case {
  std::string name;
  std::vector<std::int64_t> input;
  std::function<std::shared_ptr<Model>()> make;
  std::size_t kernels;  ///< of quantized:: at least
  bool any_batch = true;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

template <typename... Layers>
std::shared_ptr<Model> model(std::function<torch::Tensor(Model&, torch::Tensor)> call,
                             std::pair<std::string, Layers>... layers) {
  auto made = std::make_shared<Model>();
  (made->register_module(layers.first, layers.second), ...);
  made->call = std::move(call);
  return made;
}

nn::Conv2d conv(int in, int out, int kernel) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2));
}

std::vector<Case> cases() {
  using torch::Tensor;
  return {
      {"squeeze_and_excite",
       {2, 4, 8, 8},
       [] {
         return model(
             [](Model& m, Tensor x) {
               x = torch::hardswish(m("a", x));
               Tensor gate = torch::relu(m("b", torch::adaptive_avg_pool2d(x, {1, 1})));
               gate = torch::hardsigmoid(m("c", gate));
               return m("d", x * gate);
             },
             std::pair{std::string("a"), conv(4, 8, 3)}, std::pair{std::string("b"), conv(8, 4, 1)},
             std::pair{std::string("c"), conv(4, 8, 1)}, std::pair{std::string("d"), conv(8, 4, 1)});
       },
       6},
      {"up_and_down",
       {2, 4, 8, 8},
       [] {
         return model(
             [](Model& m, Tensor x) {
               const Tensor wide = torch::relu(m("a", x));
               const Tensor low = torch::relu(m("b", torch::max_pool2d(wide, 2)));
               const Tensor up = F::interpolate(
                   low, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kNearest));
               return m("c", torch::cat({wide, up}, 1));
             },
             std::pair{std::string("a"), conv(4, 8, 3)}, std::pair{std::string("b"), conv(8, 8, 3)},
             std::pair{std::string("c"), conv(16, 4, 3)});
       },
       4},
      {"channel_shuffle",
       {2, 8, 6, 6},
       [] {
         return model(
             [](Model& m, Tensor x) {
               const auto halves = torch::chunk(m("a", x), 2, 1);
               x = torch::cat({halves[0], torch::relu(m("b", halves[1]))}, 1);
               const auto n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
               x = x.view({n, 2, c / 2, h, w}).transpose(1, 2).contiguous().view({n, c, h, w});
               return m("c", x);
             },
             std::pair{std::string("a"), conv(8, 8, 1)}, std::pair{std::string("b"), conv(4, 4, 3)},
             std::pair{std::string("c"), conv(8, 8, 1)});
       },
       4},
      {"called_twice",
       {2, 4, 6, 6},
       [] {
         return model([](Model& m, Tensor x) { return m("a", torch::relu(m("a", x))) + x; },
                      std::pair{std::string("a"), conv(4, 4, 3)});
       },
       3},
      {"reflected_padding",
       {2, 4, 6, 6},
       [] {
         return model([](Model& m, Tensor x) { return m("b", torch::relu(m("a", x))); },
                      std::pair{std::string("a"),
                                nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(1).padding_mode(torch::kReflect))},
                      std::pair{std::string("b"),
                                nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(1).padding_mode(torch::kCircular))});
       },
       2},
      {"signals",
       {2, 4, 16},
       [] {
         return model([](Model& m, Tensor x) { return m("b", torch::relu(m("n", m("a", x)))); },
                      std::pair{std::string("a"), nn::Conv1d(nn::Conv1dOptions(4, 8, 3).stride(2))},
                      std::pair{std::string("n"), nn::BatchNorm1d(8)},
                      std::pair{std::string("b"), nn::Conv1d(nn::Conv1dOptions(8, 4, 3).dilation(2).groups(4))});
       },
       2},
      {"volumes",
       {1, 3, 5, 6, 6},
       [] {
         return model([](Model& m, Tensor x) { return m("b", torch::relu(m("a", x))); },
                      std::pair{std::string("a"), nn::Conv3d(nn::Conv3dOptions(3, 4, 3).padding(1))},
                      std::pair{std::string("b"), nn::Conv3d(nn::Conv3dOptions(4, 2, {1, 3, 3}))});
       },
       1},
      {"decoder",
       {2, 4, 5, 5},
       [] {
         return model([](Model& m, Tensor x) { return torch::sigmoid(m("b", torch::relu(m("a", x)))); },
                      std::pair{std::string("a"),
                                nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 4, 3).stride(2).output_padding(1))},
                      std::pair{std::string("b"), conv(4, 3, 3)});
       },
       1},
      {"token_mixer",
       {2, 6, 16},
       [] {
         return model(
             [](Model& m, Tensor x) {
               const Tensor q = m("q", x), k = m("k", x), v = m("v", x);
               const Tensor weights = torch::softmax(torch::matmul(q, k.transpose(-1, -2)) / 4, -1);
               x = m("n", x + m("o", torch::matmul(weights, v)));
               return x + m("d", torch::gelu(m("u", x)));
             },
             std::pair{std::string("q"), nn::Linear(16, 16)}, std::pair{std::string("k"), nn::Linear(16, 16)},
             std::pair{std::string("v"), nn::Linear(16, 16)}, std::pair{std::string("o"), nn::Linear(16, 16)},
             std::pair{std::string("n"), nn::LayerNorm(nn::LayerNormOptions({16}))},
             std::pair{std::string("u"), nn::Linear(16, 32)}, std::pair{std::string("d"), nn::Linear(32, 16)});
       },
       8},
  };
}

class Models : public ::testing::TestWithParam<Case> {};

TEST_P(Models, AreQuantizedAndNear) {
  torch::manual_seed(5);
  const torch::NoGradGuard no_grad;
  const auto net = GetParam().make();
  net->eval();
  const auto gm = symbolic_trace(net, {torch::randn(GetParam().input)});
  Samples samples;
  for (int i = 0; i < 4; ++i) samples.push_back({torch::randn(GetParam().input)});
  const auto prepared = calibrated(*gm, samples);
  const auto reference = convert(*prepared, {.backend = QuantBackend::reference});
  EXPECT_GT(compare_outputs(*gm, *reference, samples).output.sqnr_db, 18);
  for (const QuantBackend backend : available_quant_backends()) {
    SCOPED_TRACE(to_string(backend));
    const auto int8 = convert(*prepared, {.backend = backend});
    std::string reasons;
    for (const QuantReason& each : quantization_reasons(*prepared, {.backend = backend}))
      reasons += each.node + " " + each.op + ": " + each.reason + "\n";
    // qnnpack cannot save what it packs for volumes.
    const bool can_save = backend != QuantBackend::qnnpack || GetParam().name != "volumes";
    EXPECT_GE(count_prefix(*int8, "quantized::"), can_save ? GetParam().kernels : 0)
        << reasons << print_graph(int8->graph());
    EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 15) << print_graph(int8->graph());
    const torch::Tensor x = samples[0][0].toTensor(), expected = int8->run({x}).toTensor();
    // Another layout of the same numbers.
    const torch::Tensor turned = x.transpose(1, -1).contiguous().transpose(1, -1);
    EXPECT_LT((int8->run({turned}).toTensor() - expected).abs().max().item<double>(),
              2 * testing::largest_quantum(*int8));
    // Another batch.
    if (GetParam().any_batch && x.size(0) > 1) {
      const torch::Tensor one = int8->run({x.slice(0, 0, 1)}).toTensor();
      EXPECT_LT((one - expected.slice(0, 0, 1)).abs().max().item<double>(), 2 * testing::largest_quantum(*int8));
    }
    // Other types are refused, not taken for something else.
    EXPECT_NE(testing::error_of([&] { int8->run({x.to(torch::kDouble)}); }), "no error");
  }
}

INSTANTIATE_TEST_SUITE_P(All, Models, ::testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

// ── Inputs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(QuantizeInputs, ListsAndSeveralResults) {
  torch::manual_seed(2);
  const auto gm = testing::program_of(
      "a = operator.getitem(%x, 0)\nb = operator.getitem(%x, 1)\nc = aten::linear(%a, %w)\nd = aten::add.Tensor(%c, "
      "%b)\nreturn {'sum': %d, 'parts': [%c, %b]}",
      "x", {{"w", torch::randn({6, 6}) * 0.4}});
  Samples samples;
  for (int i = 0; i < 4; ++i)
    samples.push_back({c10::List<torch::Tensor>({torch::randn({3, 6}), torch::randn({3, 6})})});
  const auto int8 = convert(*calibrated(*gm, samples));
  EXPECT_EQ(count_prefix(*int8, "quantized::"), 2U) << print_graph(int8->graph());
  EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 25);
}

TEST(QuantizeInputs, EmptyBatches) {
  torch::manual_seed(2);
  const auto gm =
      testing::program_of("a = aten::linear(%x, %w)\nb = aten::relu(%a)\nreturn b", "x", {{"w", torch::randn({6, 6})}});
  const auto prepared = calibrated(*gm, {{torch::randn({3, 6})}, {torch::randn({0, 6})}});
  const auto reference = convert(*prepared, {.backend = QuantBackend::reference});
  EXPECT_EQ(reference->run({torch::randn({0, 6})}).toTensor().sizes(), at::IntArrayRef({0, 6}));
  const auto unseen = prepare(*gm, QuantConfig::defaults(), {torch::randn({3, 6})});
  unseen->run({torch::randn({0, 6})});
  EXPECT_THAT(testing::error_of([&] { convert(*unseen); }), ::testing::HasSubstr("was seen"));
}

TEST(QuantizeInputs, OtherTypesStayFloat) {
  for (const at::ScalarType type : {torch::kDouble, torch::kBFloat16}) {
    const auto gm = testing::program_of("a = aten::linear(%x, %w)\nb = aten::relu(%a)\nreturn b", "x",
                                        {{"w", torch::randn({6, 6}).to(type)}});
    const Samples samples = {{torch::randn({3, 6}).to(type)}};
    const auto int8 = convert(*calibrated(*gm, samples));
    EXPECT_EQ(count_prefix(*int8, "quantized::"), 0U);
    EXPECT_TRUE(torch::equal(int8->run(samples[0]).toTensor(), gm->run(samples[0]).toTensor()));
  }
}

TEST(QuantizeInputs, MemoryThatIsReadByStrides) {
  torch::manual_seed(3);
  const auto gm = testing::program_of(
      "a = aten::conv2d(%x, %w)\nb = aten::as_strided(%a, [2, 36], [144, 1])\nc = aten::linear(%b, %v)\nreturn c", "x",
      {{"w", torch::randn({4, 4, 1, 1})}, {"v", torch::randn({5, 36})}});
  const Samples samples = {{torch::randn({2, 4, 6, 6})}};
  EXPECT_GT(compare_outputs(*gm, *convert(*calibrated(*gm, samples)), samples).output.sqnr_db, 20);
  const auto turned = testing::program_of(
      "a = aten::conv2d(%x, %w)\nt = aten::permute(%a, [0, 2, 3, 1])\nb = aten::as_strided(%t, [2, 36], [144, "
      "1])\nreturn b",
      "x", {{"w", torch::randn({4, 4, 1, 1})}});
  EXPECT_THAT(testing::error_of([&] { prepare(*turned, QuantConfig::defaults(), samples[0]); }),
              ::testing::HasSubstr("write it with slices"));
}

TEST(QuantizeInputs, VectorsInDynamicMode) {
  const auto gm = testing::program_of("a = aten::linear(%x, %w)\nreturn a", "x", {{"w", torch::randn({6, 6})}});
  const Samples samples = {{torch::randn({6})}};
  const auto int8 = convert(*calibrated(*gm, samples, QuantConfig::dynamic()));
  EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 15) << print_graph(int8->graph());
}

}  // namespace fx::models_test
