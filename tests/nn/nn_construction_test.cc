// The expressions that make modules of torch::nn anew. That they compile and make equal modules is tested with
// generated C++, in tests/trace.
#include <fxgraph/nn/nn_construction.h>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace fx::nn_construction_test {

namespace nn = torch::nn;

std::string made(const torch::nn::Module& module) {
  const std::optional<CodeModule> result = construction_of(module);
  return result ? result->construction : "nothing";
}

TEST(NnConstruction, LeavesOutDefaults) {
  EXPECT_EQ(made(*nn::LSTM(3, 4)), "torch::nn::LSTM(torch::nn::LSTMOptions(3, 4))");
  EXPECT_EQ(made(*nn::GELU()), "torch::nn::GELU(torch::nn::GELUOptions())");
  EXPECT_EQ(made(*nn::Sigmoid()), "torch::nn::Sigmoid()");
}

TEST(NnConstruction, SpellsOptionsOfEveryKind) {
  EXPECT_EQ(
      made(*nn::LSTM(nn::LSTMOptions(3, 4).num_layers(2).dropout(0.25).bidirectional(true).bias(false))),
      "torch::nn::LSTM(torch::nn::LSTMOptions(3, 4).bias(false).num_layers(2).dropout(0.25).bidirectional(true))");
  EXPECT_EQ(made(*nn::Conv2d(nn::Conv2dOptions(3, 4, {3, 5}).stride(2).padding(torch::kSame).stride(1))),
            "torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, {3, 5}).padding(torch::kSame))");
  EXPECT_EQ(made(*nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding({1, 2}).padding_mode(torch::kReflect))),
            "torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(torch::ExpandingArray<2>({1, 2}))"
            ".padding_mode(torch::kReflect))");
  EXPECT_EQ(made(*nn::GELU(nn::GELUOptions().approximate("tanh"))),
            "torch::nn::GELU(torch::nn::GELUOptions().approximate(\"tanh\"))");
  EXPECT_EQ(made(*nn::BatchNorm1d(nn::BatchNormOptions(3).momentum(c10::nullopt).eps(1e-3))),
            "torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(3).eps(0.001).momentum(torch::nullopt))");
  EXPECT_EQ(made(*nn::LayerNorm(nn::LayerNormOptions({2, 3}))),
            "torch::nn::LayerNorm(torch::nn::LayerNormOptions(std::vector<int64_t>{2, 3}))");
  EXPECT_EQ(made(*nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({5, c10::nullopt}))),
            "torch::nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions({5, torch::nullopt}))");
  EXPECT_EQ(
      made(*nn::Upsample(
          nn::UpsampleOptions().scale_factor(std::vector<double>{2}).mode(torch::kBilinear).align_corners(false))),
      "torch::nn::Upsample(torch::nn::UpsampleOptions().scale_factor(std::vector<double>{2.0}).mode(torch::"
      "kBilinear).align_corners(false))");
}

TEST(NnConstruction, SpellsPythonAlike) {
  const auto in_python = [](const torch::nn::Module& module) { return construction_of(module)->python_construction; };
  EXPECT_EQ(in_python(*nn::LSTM(nn::LSTMOptions(3, 4).num_layers(2).bias(false))),
            "torch.nn.modules.rnn.LSTM(3, 4, bias=False, num_layers=2)");
  EXPECT_EQ(in_python(*nn::Conv2d(nn::Conv2dOptions(3, 4, {3, 5}).padding({1, 2}).padding_mode(torch::kReflect))),
            "torch.nn.modules.conv.Conv2d(3, 4, (3, 5), padding=(1, 2), padding_mode='reflect')");
  EXPECT_EQ(in_python(*nn::Hardshrink(0.25)), "torch.nn.modules.activation.Hardshrink(lambd=0.25)");
  EXPECT_EQ(in_python(*nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({5, c10::nullopt}))),
            "torch.nn.modules.pooling.AdaptiveAvgPool2d((5, None))");
  EXPECT_EQ(
      in_python(*nn::TransformerEncoder(nn::TransformerEncoderOptions(nn::TransformerEncoderLayer(4, 2), 3)
                                            .norm(nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({4})))))),
      "torch.nn.modules.transformer.TransformerEncoder(torch.nn.modules.transformer.TransformerEncoderLayer(4, 2), "
      "3, norm=torch.nn.modules.normalization.LayerNorm((4,)))");
}

TEST(NnConstruction, TellsResultsAndModes) {
  nn::LSTM lstm(3, 4);
  lstm->eval();
  const CodeModule made = *construction_of(*lstm);
  EXPECT_EQ(made.type, "torch::nn::LSTM");
  EXPECT_FALSE(made.training);
  ASSERT_EQ(made.result.parts.size(), 2U);
  EXPECT_EQ(made.result.parts[0].parts.size(), 0U);
  EXPECT_EQ(made.result.parts[1].parts.size(), 2U);
}

TEST(NnConstruction, KnowsNothingOfOtherTypesAndOfFunctions) {
  struct Other : nn::Module {};
  EXPECT_EQ(made(Other()), "nothing");
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(4, 2).activation(
      std::function<torch::Tensor(const torch::Tensor&)>([](const torch::Tensor& x) { return x.relu(); })));
  EXPECT_EQ(made(*layer), "nothing");
}

}  // namespace fx::nn_construction_test
