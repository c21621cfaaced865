#include "tests/trace/nn_cases.h"

namespace fx::testing {
namespace {

using torch::Tensor;
namespace nn = torch::nn;

template <typename Result>
c10::IValue to_value(const Result& result) {
  if constexpr (std::is_same_v<Result, nn::ASMoutput>) {
    return c10::ivalue::Tuple::create({result.output, c10::IValue(result.loss)});
  } else {
    return c10::IValue(result);
  }
}

template <typename Module, typename... Inputs>
NnCase make(const char* name, Module module, bool draws_in_training, Inputs... inputs) {
  NnCase result;
  result.name = name;
  result.draws_in_training = draws_in_training;
  result.module = module.ptr();
  (result.inputs.push_back(c10::IValue(inputs)), ...);
  result.trace = [module](Tracer& tracer, const std::vector<c10::IValue>& examples) {
    return tracer.trace(module, examples);
  };
  result.trace_child = [module](Tracer& tracer, const std::vector<c10::IValue>& examples) {
    return tracer.trace_with_root(
        std::make_shared<Parent>(module.ptr()),
        [module](Inputs... values) mutable { return module->forward(values...); }, examples);
  };
  result.eager = [module, inputs...]() mutable { return to_value(module->forward(inputs...)); };
  return result;
}

Tensor rand(std::initializer_list<std::int64_t> sizes) { return torch::rand(sizes) - 0.25; }
Tensor labels(std::int64_t count, std::int64_t classes) { return torch::randint(classes, {count}, torch::kInt64); }

#define MODULE(type, options, ...) make(#type, nn::type options, false, __VA_ARGS__)
#define RANDOM(type, options, ...) make(#type, nn::type options, true, __VA_ARGS__)

std::vector<NnCase> activations() {
  const Tensor x = rand({2, 6});
  return {MODULE(ELU, (), x),         MODULE(SELU, (), x),
          MODULE(Hardshrink, (), x),  MODULE(Hardtanh, (), x),
          MODULE(LeakyReLU, (), x),   MODULE(LogSigmoid, (), x),
          MODULE(Softmax, (1), x),    MODULE(Softmin, (1), x),
          MODULE(LogSoftmax, (1), x), MODULE(Softmax2d, (), rand({1, 2, 3, 3})),
          MODULE(PReLU, (), x),       MODULE(ReLU, (), x),
          MODULE(ReLU6, (), x),       RANDOM(RReLU, (), x),
          MODULE(CELU, (), x),        MODULE(GLU, (), x),
          MODULE(GELU, (), x),        MODULE(SiLU, (), x),
          MODULE(Mish, (), x),        MODULE(Sigmoid, (), x),
          MODULE(Softplus, (), x),    MODULE(Softshrink, (), x),
          MODULE(Softsign, (), x),    MODULE(Tanh, (), x),
          MODULE(Tanhshrink, (), x),  MODULE(Threshold, (0.1, 20), x)};
}

std::vector<NnCase> convolutions() {
  const Tensor x1 = rand({2, 3, 8}), x2 = rand({2, 3, 8, 8}), x3 = rand({1, 3, 5, 5, 5});
  return {MODULE(Conv1d, (3, 4, 3), x1),
          MODULE(Conv2d, (3, 4, 3), x2),
          MODULE(Conv3d, (3, 4, 3), x3),
          make("Conv2dCircular", nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1).padding_mode(torch::kCircular)),
               false, x2),
          make("Conv2dSame", nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(torch::kSame)), false, x2),
          make("Conv2dGroups", nn::Conv2d(nn::Conv2dOptions(3, 6, 3).groups(3).dilation(2).bias(false)), false, x2),
          MODULE(ConvTranspose1d, (3, 4, 3), x1),
          MODULE(ConvTranspose2d, (3, 4, 3), x2),
          MODULE(ConvTranspose3d, (3, 4, 3), x3),
          MODULE(Unfold, (2), x2),
          MODULE(Fold, (nn::FoldOptions({4, 4}, {2, 2})), rand({1, 12, 9}))};
}

std::vector<NnCase> linear() {
  const Tensor x = rand({3, 4});
  return {
      MODULE(Identity, (), x),
      MODULE(Linear, (4, 5), x),
      make("LinearRank3", nn::Linear(4, 5), false, rand({2, 3, 4})),
      make("LinearNoBias", nn::Linear(nn::LinearOptions(4, 5).bias(false)), false, x),
      MODULE(Bilinear, (4, 4, 2), x, rand({3, 4})),
      MODULE(Flatten, (), rand({2, 3, 4})),
      MODULE(Unflatten, (nn::UnflattenOptions(1, {2, 2})), x),
      MODULE(Embedding, (10, 4), labels(5, 10)),
      MODULE(EmbeddingBag, (10, 4), torch::randint(10, {2, 3}, torch::kInt64)),
      make("EmbeddingBagOffsets", nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 4).mode(torch::kSum)), false,
           labels(7, 10), torch::tensor({0, 2, 5})),
      RANDOM(Dropout, (), x),
      RANDOM(Dropout2d, (), rand({2, 3, 4, 4})),
      RANDOM(Dropout3d, (), rand({2, 3, 2, 2, 2})),
      RANDOM(AlphaDropout, (), x),
      RANDOM(FeatureAlphaDropout, (), rand({2, 3, 4})),
      MODULE(CosineSimilarity, (), x, rand({3, 4})),
      MODULE(PairwiseDistance, (), x, rand({3, 4})),
      MODULE(PixelShuffle, (2), rand({1, 4, 2, 2})),
      MODULE(PixelUnshuffle, (2), rand({1, 1, 4, 4})),
      MODULE(Upsample, (nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kNearest)),
             rand({1, 2, 3, 3})),
      make("UpsampleBilinear",
           nn::Upsample(
               nn::UpsampleOptions().size(std::vector<std::int64_t>{5, 5}).mode(torch::kBilinear).align_corners(false)),
           false, rand({1, 2, 3, 3}))};
}

std::vector<NnCase> normalisations() {
  const Tensor x1 = rand({4, 3, 5}), x2 = rand({4, 3, 5, 5}), x3 = rand({2, 3, 4, 4, 4});
  return {MODULE(BatchNorm1d, (3), x1),
          MODULE(BatchNorm2d, (3), x2),
          MODULE(BatchNorm3d, (3), x3),
          make("BatchNormPlain", nn::BatchNorm2d(nn::BatchNormOptions(3).affine(false).track_running_stats(false)),
               false, x2),
          MODULE(InstanceNorm1d, (3), x1),
          MODULE(InstanceNorm2d, (nn::InstanceNorm2dOptions(3).affine(true).track_running_stats(true)), x2),
          MODULE(InstanceNorm3d, (3), x3),
          MODULE(LayerNorm, (nn::LayerNormOptions({5})), x1),
          MODULE(GroupNorm, (3, 3), x2),
          MODULE(LocalResponseNorm, (2), x2),
          MODULE(CrossMapLRN2d, (3), x2)};
}

std::vector<NnCase> pools() {
  const Tensor x1 = rand({2, 3, 8}), x2 = rand({2, 3, 8, 8}), x3 = rand({1, 3, 6, 6, 6});
  const auto [p1, i1] = torch::max_pool1d_with_indices(x1, 2);
  const auto [p2, i2] = torch::max_pool2d_with_indices(x2, 2);
  const auto [p3, i3] = torch::max_pool3d_with_indices(x3, 2);
  return {MODULE(AvgPool1d, (2), x1),
          MODULE(AvgPool2d, (2), x2),
          MODULE(AvgPool3d, (2), x3),
          MODULE(MaxPool1d, (2), x1),
          MODULE(MaxPool2d, (2), x2),
          MODULE(MaxPool3d, (2), x3),
          MODULE(AdaptiveAvgPool1d, (3), x1),
          MODULE(AdaptiveAvgPool2d, (nn::AdaptiveAvgPool2dOptions({3, 3})), x2),
          MODULE(AdaptiveAvgPool3d, (nn::AdaptiveAvgPool3dOptions({2, 2, 2})), x3),
          MODULE(AdaptiveMaxPool1d, (3), x1),
          MODULE(AdaptiveMaxPool2d, (nn::AdaptiveMaxPool2dOptions({3, 3})), x2),
          MODULE(AdaptiveMaxPool3d, (nn::AdaptiveMaxPool3dOptions({2, 2, 2})), x3),
          MODULE(MaxUnpool1d, (2), p1, i1),
          MODULE(MaxUnpool2d, (2), p2, i2),
          MODULE(MaxUnpool3d, (2), p3, i3),
          RANDOM(FractionalMaxPool2d, (nn::FractionalMaxPool2dOptions(2).output_size(torch::ExpandingArray<2>(3))), x2),
          RANDOM(FractionalMaxPool3d, (nn::FractionalMaxPool3dOptions(2).output_size(torch::ExpandingArray<3>(3))), x3),
          MODULE(LPPool1d, (2, 2), x1),
          MODULE(LPPool2d, (2, 2), x2)};
}

std::vector<NnCase> paddings() {
  const Tensor x1 = rand({2, 3, 6}), x2 = rand({2, 3, 6, 6}), x3 = rand({1, 2, 4, 4, 4});
  return {MODULE(ReflectionPad1d, (2), x1),    MODULE(ReflectionPad2d, (2), x2),    MODULE(ReflectionPad3d, (1), x3),
          MODULE(ReplicationPad1d, (2), x1),   MODULE(ReplicationPad2d, (2), x2),   MODULE(ReplicationPad3d, (1), x3),
          MODULE(ConstantPad1d, (2, 3.5), x1), MODULE(ConstantPad2d, (2, 3.5), x2), MODULE(ConstantPad3d, (1, 3.5), x3),
          MODULE(ZeroPad2d, (2), x2)};
}

std::vector<NnCase> losses() {
  const Tensor x = rand({4, 5}), y = rand({4, 5}), positive = torch::rand({4, 5});
  const Tensor sign = torch::randint(2, {4}, torch::kInt64) * 2 - 1;
  const Tensor log_probs = torch::log_softmax(rand({6, 2, 5}), 2);
  return {MODULE(L1Loss, (), x, y),
          MODULE(MSELoss, (), x, y),
          MODULE(SmoothL1Loss, (), x, y),
          MODULE(HuberLoss, (), x, y),
          MODULE(KLDivLoss, (), x, positive),
          MODULE(BCELoss, (), positive, torch::rand({4, 5})),
          MODULE(BCEWithLogitsLoss, (), x, torch::rand({4, 5})),
          MODULE(HingeEmbeddingLoss, (), x, torch::sign(y)),
          MODULE(MultiMarginLoss, (), x, labels(4, 5)),
          MODULE(CosineEmbeddingLoss, (), x, y, sign),
          MODULE(MultiLabelMarginLoss, (), x, torch::randint(5, {4, 5}, torch::kInt64)),
          MODULE(MultiLabelSoftMarginLoss, (), x, torch::rand({4, 5})),
          MODULE(SoftMarginLoss, (), x, torch::sign(y)),
          MODULE(TripletMarginLoss, (), x, y, positive),
          MODULE(TripletMarginWithDistanceLoss, (), x, y, positive),
          MODULE(PoissonNLLLoss, (), x, positive),
          MODULE(MarginRankingLoss, (), x, y, torch::sign(y)),
          MODULE(NLLLoss, (), torch::log_softmax(x, 1), labels(4, 5)),
          MODULE(CrossEntropyLoss, (), x, labels(4, 5)),
          MODULE(CTCLoss, (), log_probs, torch::randint(1, 5, {2, 3}, torch::kInt64),
                 torch::full({2}, 6, torch::kInt64), torch::full({2}, 3, torch::kInt64))};
}

std::vector<NnCase> recurrent_and_attention() {
  const Tensor x = rand({5, 2, 4}), h = rand({1, 2, 3}), c = rand({1, 2, 3});
  const Tensor x0 = rand({2, 4}), h0 = rand({2, 3}), c0 = rand({2, 3});
  const Tensor source = rand({5, 2, 8}), target = rand({3, 2, 8});
  const auto layer = nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16);
  const auto decoder_layer = nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16);
  return {
      MODULE(RNN, (4, 3), x),
      make("RNNHidden", nn::RNN(nn::RNNOptions(4, 3).nonlinearity(torch::kReLU)), false, x, h),
      MODULE(LSTM, (4, 3), x),
      make("LSTMHidden", nn::LSTM(4, 3), false, x, std::make_tuple(h, c)),
      make("LSTMDeep", nn::LSTM(nn::LSTMOptions(4, 3).num_layers(2).bidirectional(true).batch_first(true)), false, x),
      make("LSTMProjected", nn::LSTM(nn::LSTMOptions(4, 3).proj_size(2)), false, x),
      MODULE(GRU, (4, 3), x),
      make("GRUHidden", nn::GRU(4, 3), false, x, h),
      MODULE(RNNCell, (4, 3), x0),
      make("RNNCellHidden", nn::RNNCell(4, 3), false, x0, h0),
      MODULE(LSTMCell, (4, 3), x0),
      make("LSTMCellHidden", nn::LSTMCell(4, 3), false, x0, std::make_tuple(h0, c0)),
      MODULE(GRUCell, (4, 3), x0),
      make("GRUCellHidden", nn::GRUCell(4, 3), false, x0, h0),
      make("MultiheadAttention", nn::MultiheadAttention(8, 2), false, target, source, source),
      make("MultiheadAttentionSelf", nn::MultiheadAttention(8, 2), false, source, source, source),
      RANDOM(TransformerEncoderLayer, (layer), source),
      RANDOM(TransformerDecoderLayer, (decoder_layer), target, source),
      RANDOM(TransformerEncoder, (nn::TransformerEncoderOptions(layer, 2)), source),
      RANDOM(TransformerDecoder, (nn::TransformerDecoderOptions(decoder_layer, 2)), target, source),
      RANDOM(Transformer, (nn::TransformerOptions(8, 2, 1, 1).dim_feedforward(16)), source, target)};
}

std::vector<NnCase> containers() {
  const Tensor x = rand({3, 4});
  return {MODULE(Sequential, (nn::Linear(4, 4), nn::ReLU(), nn::Linear(4, 2), nn::Tanh()), x),
          MODULE(Functional, (torch::relu), x)};
}

}  // namespace

std::vector<NnCase> all_nn_cases() {
  torch::manual_seed(11);
  std::vector<NnCase> all;
  for (auto list : {activations(), convolutions(), linear(), normalisations(), pools(), paddings(), losses(),
                    recurrent_and_attention(), containers()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace fx::testing
