// Models with recurrent modules, attention and containers inside, in plain C++ LibTorch: nothing in them knows of
// tracing.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fx::testing {

/// Embedding, transformer encoder and decoder, linear head: source and target tokens to logits.
struct TranslatorImpl : torch::nn::Module {
  TranslatorImpl() {
    source = register_module("source", torch::nn::Embedding(11, 8));
    target = register_module("target", torch::nn::Embedding(13, 8));
    positions = register_buffer("positions", torch::rand({16, 1, 8}));
    const auto layer = torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16);
    encoder = register_module("encoder", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, 2)));
    decoder = register_module("decoder", torch::nn::TransformerDecoderLayer(
                                             torch::nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16)));
    head = register_module("head", torch::nn::Linear(8, 13));
  }
  torch::Tensor forward(const torch::Tensor& words, const torch::Tensor& translated) {
    const torch::Tensor from = source(words) + positions.slice(0, 0, words.size(0));
    const torch::Tensor memory = encoder(from);
    const torch::Tensor to = target(translated) + positions.slice(0, 0, translated.size(0));
    return head(decoder(to, memory));
  }
  torch::nn::Embedding source{nullptr}, target{nullptr};
  torch::Tensor positions;
  torch::nn::TransformerEncoder encoder{nullptr};
  torch::nn::TransformerDecoderLayer decoder{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Translator);

/// Convolutions over an image of text, an LSTM over its columns, a linear head.
struct CrnnImpl : torch::nn::Module {
  CrnnImpl() {
    convolutions = register_module(
        "convolutions", torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)),
                                              torch::nn::ReLU(), torch::nn::MaxPool2d(2)));
    lstm = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(16, 6).num_layers(2).bidirectional(true).batch_first(true)));
    head = register_module("head", torch::nn::Linear(12, 7));
  }
  torch::Tensor forward(const torch::Tensor& image) {
    const torch::Tensor features = convolutions->forward(image);
    const torch::Tensor columns = features.flatten(1, 2).transpose(1, 2);
    const auto [states, last] = lstm(columns);
    return torch::log_softmax(head(states), 2);
  }
  torch::nn::Sequential convolutions{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Crnn);

/// A GRU reads, a GRU cell writes three steps and looks at what was read.
struct Seq2SeqImpl : torch::nn::Module {
  Seq2SeqImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(9, 6));
    encoder = register_module("encoder", torch::nn::GRU(6, 6));
    attention = register_module("attention", torch::nn::MultiheadAttention(6, 2));
    cell = register_module("cell", torch::nn::GRUCell(6, 6));
    head = register_module("head", torch::nn::Linear(12, 9));
  }
  torch::Tensor forward(const torch::Tensor& words) {
    const auto [read, state] = encoder(embedding(words));
    torch::Tensor hidden = state[0];
    std::vector<torch::Tensor> written;
    for (int step = 0; step < 3; ++step) {
      const torch::Tensor query = hidden.unsqueeze(0);
      const torch::Tensor seen = std::get<0>(attention(query, read, read)).squeeze(0);
      hidden = cell(seen, hidden);
      written.push_back(head(torch::cat({hidden, seen}, 1)));
    }
    return torch::stack(written);
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::GRU encoder{nullptr};
  torch::nn::MultiheadAttention attention{nullptr};
  torch::nn::GRUCell cell{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Seq2Seq);

/// Pre-norm block of a vision transformer.
struct VitBlockImpl : torch::nn::Module {
  explicit VitBlockImpl(int width) {
    norm1 = register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    attention = register_module("attention", torch::nn::MultiheadAttention(width, 2));
    norm2 = register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    mlp = register_module("mlp", torch::nn::Sequential(torch::nn::Linear(width, 2 * width), torch::nn::GELU(),
                                                       torch::nn::Linear(2 * width, width)));
  }
  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor normed = norm1(x);
    x = x + std::get<0>(attention(normed, normed, normed));
    return x + mlp->forward(norm2(x));
  }
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  torch::nn::MultiheadAttention attention{nullptr};
  torch::nn::Sequential mlp{nullptr};
};
TORCH_MODULE(VitBlock);

struct VitImpl : torch::nn::Module {
  VitImpl() {
    patches = register_module("patches", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 4).stride(4)));
    token = register_parameter("token", torch::rand({1, 1, 8}));
    positions = register_parameter("positions", torch::rand({17, 1, 8}));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < 2; ++i) blocks->push_back(VitBlock(8));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})));
    head = register_module("head", torch::nn::Linear(8, 5));
  }
  torch::Tensor forward(const torch::Tensor& image) {
    torch::Tensor x = patches(image).flatten(2).permute({2, 0, 1});
    x = torch::cat({token.expand({1, x.size(1), -1}), x}) + positions;
    for (const auto& block : *blocks) x = block->as<VitBlockImpl>()->forward(x);
    return head(norm(x)[0]);
  }
  torch::nn::Conv2d patches{nullptr};
  torch::Tensor token, positions;
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Vit);

/// Depthwise separable blocks in a ModuleList, heads in a ModuleDict, scales in a ParameterList, one AnyModule.
struct MobileNetImpl : torch::nn::Module {
  MobileNetImpl() {
    blocks = register_module("blocks", torch::nn::ModuleList());
    scales = register_module("scales", torch::nn::ParameterList());
    int in = 3;
    for (const int out : {4, 8}) {
      blocks->push_back(torch::nn::Sequential(
          torch::nn::Conv2d(torch::nn::Conv2dOptions(in, in, 3).padding(1).groups(in).bias(false)),
          torch::nn::BatchNorm2d(in), torch::nn::ReLU6(), torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1)),
          torch::nn::BatchNorm2d(out)));
      scales->append(torch::full({1}, 0.5 * out));
      in = out;
    }
    heads = register_module("heads", torch::nn::ModuleDict());
    heads->update(std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>{
        {"small", torch::nn::Linear(8, 2).ptr()}, {"large", torch::nn::Linear(8, 5).ptr()}});
    squash = torch::nn::AnyModule(torch::nn::Hardtanh(torch::nn::HardtanhOptions().min_val(-2).max_val(2)));
    register_module("squash", squash.ptr());
  }
  std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    for (std::size_t i = 0; i < blocks->size(); ++i) {
      x = blocks[i]->as<torch::nn::Sequential>()->forward(x) * scales[i];
      x = squash.forward(x);
    }
    x = torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
    return {heads["small"]->as<torch::nn::Linear>()->forward(x), heads["large"]->as<torch::nn::Linear>()->forward(x)};
  }
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::ParameterList scales{nullptr};
  torch::nn::ModuleDict heads{nullptr};
  torch::nn::AnyModule squash;
};
TORCH_MODULE(MobileNet);

}  // namespace fx::testing
