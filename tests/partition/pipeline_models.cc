#include "tests/partition/pipeline_models.h"

#include <torch/torch.h>

#include <fxgraph/trace/symbolic_trace.h>
#include "tests/trace/torch_models.h"

namespace fx::testing {
namespace {

using torch::Tensor;

/// A layer of a transformer, written out; the mask, if there is one, is added to the scores.
struct BlockImpl : torch::nn::Module {
  BlockImpl(int width, int heads) : heads(heads) {
    norm1 = register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    norm2 = register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
    out = register_module("out", torch::nn::Linear(width, width));
    up = register_module("up", torch::nn::Linear(width, 4 * width));
    down = register_module("down", torch::nn::Linear(4 * width, width));
  }
  Tensor forward(Tensor x, const Tensor& mask) {
    const std::vector<Tensor> parts = qkv(norm1(x)).chunk(3, -1);
    const auto split = [&](const Tensor& t) {
      return t.unflatten(-1, std::vector<std::int64_t>{heads, -1}).transpose(1, 2);
    };
    const Tensor q = split(parts[0]), k = split(parts[1]), v = split(parts[2]);
    const Tensor scores = torch::matmul(q, k.transpose(-1, -2)) * 0.25 + mask;
    x = x + out(torch::matmul(torch::softmax(scores, -1), v).transpose(1, 2).flatten(2));
    return x + down(torch::gelu(up(norm2(x))));
  }
  int heads;
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};
TORCH_MODULE(Block);

struct TransformerImpl : torch::nn::Module {
  TransformerImpl(bool causal, int layers) : causal(causal) {
    tokens = register_module("tokens", torch::nn::Embedding(50, kWidth));
    positions = register_parameter("positions", torch::randn({kLength, kWidth}) * 0.02);
    triangle = register_buffer("triangle", torch::full({kLength, kLength}, -1e4).triu(1));
    for (int i = 0; i < layers; ++i) blocks.push_back(register_module("block" + std::to_string(i), Block(kWidth, 2)));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    if (!causal) head = register_module("head", torch::nn::Linear(kWidth, 3));
  }
  Tensor forward(const Tensor& ids, const Tensor& keep) {
    Tensor x = tokens(ids) + positions;
    const Tensor mask = causal ? triangle + 0 * keep.sum() : (1 - keep).unsqueeze(1).unsqueeze(1) * -1e4;
    for (Block& block : blocks) x = block(x, mask);
    x = norm(x);
    return causal ? torch::matmul(x, tokens->weight.t()) : head(x.select(1, 0));
  }
  static constexpr int kWidth = 32, kLength = 12;
  bool causal;
  torch::nn::Embedding tokens{nullptr};
  Tensor positions, triangle;
  std::vector<Block> blocks;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Transformer);

Tensor cross_entropy(const c10::IValue& output, const std::vector<Tensor>& targets) {
  const Tensor logits = output.toTensor();
  return torch::nn::functional::cross_entropy(logits.reshape({-1, logits.size(-1)}), targets.at(0).reshape({-1}));
}

template <typename Net>
PipelineCase make(Net net, std::vector<c10::IValue> inputs, Tensor target) {
  net->eval();  // the statistics of a BatchNorm in training are those of a micro-batch
  // Sizes are those of the batch or of a micro-batch: nothing in these programs names them.
  return {symbolic_trace(net, inputs), inputs, {std::move(target)}, &cross_entropy};
}

}  // namespace

PipelineCase pipeline_case(const std::string& name) {
  torch::manual_seed(23);
  const Tensor classes = torch::randint(0, 3, {8}), ids = torch::randint(0, 50, {8, 12});
  if (name == "mlp") return make(Mlp(), {torch::rand({8, 8})}, classes);
  if (name == "resnet") return make(ResNet18(8, 3), {torch::rand({8, 3, 32, 32})}, classes);
  Tensor keep = torch::ones({8, 12});
  keep.slice(1, 9) = 0;
  if (name == "bert") return make(Transformer(false, 3), {ids, keep}, classes);
  return make(Transformer(true, 4), {ids, keep}, torch::randint(0, 50, {8, 12}));
}

}  // namespace fx::testing
