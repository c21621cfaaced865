#include "tests/partition/pipeline_models.h"

#include <torch/torch.h>

#include <array>

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

/// ResNet-50's blocks (3, 4, 6, 3 of them), narrow.
struct BottleneckImpl : torch::nn::Module {
  BottleneckImpl(int in, int width, int stride) {
    const auto conv = [&](const char* name, int from, int to, int size, int step) {
      return register_module(
          name, torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, size).stride(step).padding(size / 2).bias(false)));
    };
    const auto norm = [&](const char* name, int channels) {
      return register_module(name, torch::nn::BatchNorm2d(channels));
    };
    conv1 = conv("conv1", in, width, 1, 1);
    bn1 = norm("bn1", width);
    conv2 = conv("conv2", width, width, 3, stride);
    bn2 = norm("bn2", width);
    conv3 = conv("conv3", width, 4 * width, 1, 1);
    bn3 = norm("bn3", 4 * width);
    if (stride == 1 && in == 4 * width) return;
    shortcut = conv("downsample", in, 4 * width, 1, stride);
    shortcut_bn = norm("downsample_bn", 4 * width);
  }
  Tensor forward(const Tensor& x) {
    const Tensor identity = shortcut ? shortcut_bn(shortcut(x)) : x;
    Tensor y = bn1(conv1(x)).relu_();
    y = bn3(conv3(bn2(conv2(y)).relu_()));
    y += identity;
    return y.relu_();
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr}, shortcut{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr}, shortcut_bn{nullptr};
};
TORCH_MODULE(Bottleneck);

torch::nn::Sequential resnet50(int width, int classes) {
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, width, 7).stride(2).padding(3).bias(false)),
                            torch::nn::BatchNorm2d(width), torch::nn::ReLU(torch::nn::ReLUOptions(true)),
                            torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)));
  int in = width;
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < std::array{3, 4, 6, 3}[static_cast<std::size_t>(stage)]; ++block) {
      net->push_back(Bottleneck(in, width << stage, block == 0 && stage > 0 ? 2 : 1));
      in = 4 * (width << stage);
    }
  }
  net->push_back(torch::nn::AdaptiveAvgPool2d(1));
  net->push_back(torch::nn::Flatten());
  net->push_back(torch::nn::Linear(in, classes));
  return net;
}

Tensor cross_entropy(const c10::IValue& output, const std::vector<Tensor>& targets) {
  const Tensor logits = output.toTensor();
  return torch::nn::functional::cross_entropy(logits.reshape({-1, logits.size(-1)}), targets.at(0).reshape({-1}));
}

template <typename Net>
PipelineCase make(Net net, std::vector<c10::IValue> inputs, Tensor target) {
  net->eval();  // the statistics of a BatchNorm in training are those of a micro-batch
  // Sizes are those of the batch or of a micro-batch: nothing in these programs names them.
  return {symbolic_trace(net, inputs, {.sizes = Sizes::fixed}), inputs, {std::move(target)}, &cross_entropy};
}

}  // namespace

PipelineCase pipeline_case(const std::string& name) {
  torch::manual_seed(23);
  const Tensor classes = torch::randint(0, 3, {8}), ids = torch::randint(0, 50, {8, 12});
  if (name == "mlp") return make(Mlp(), {torch::rand({8, 8})}, classes);
  if (name == "resnet50") return make(resnet50(8, 3), {torch::rand({8, 3, 64, 64})}, classes);
  Tensor keep = torch::ones({8, 12});
  keep.slice(1, 9) = 0;
  if (name == "bert") return make(Transformer(false, 3), {ids, keep}, classes);
  return make(Transformer(true, 4), {ids, keep}, torch::randint(0, 50, {8, 12}));
}

}  // namespace fx::testing
