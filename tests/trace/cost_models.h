// The models of which the cost of a generic trace is measured, as people write them in C++ LibTorch.
#pragma once

#include <torch/torch.h>

#include <string>
#include <tuple>

namespace fx::testing {

struct LstmTaggerImpl : torch::nn::Module {
  LstmTaggerImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(1000, 64));
    lstm = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(64, 128).num_layers(2).bidirectional(true).batch_first(true)));
    head = register_module("head", torch::nn::Linear(256, 17));
  }
  torch::Tensor forward(const torch::Tensor& words) {
    return torch::log_softmax(head(std::get<0>(lstm(embedding(words)))), 2);
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(LstmTagger);

struct TransformerClassifierImpl : torch::nn::Module {
  TransformerClassifierImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(1000, 64));
    const auto layer = torch::nn::TransformerEncoderLayerOptions(64, 4).dim_feedforward(128);
    encoder = register_module("encoder", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, 3)));
    head = register_module("head", torch::nn::Linear(64, 5));
  }
  torch::Tensor forward(const torch::Tensor& words) { return head(encoder(embedding(words)).mean(0)); }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::TransformerEncoder encoder{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(TransformerClassifier);

}  // namespace fx::testing
