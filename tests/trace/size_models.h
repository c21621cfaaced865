// Models that compute with the sizes of their inputs, in plain C++ LibTorch, as public projects write them: positions
// sliced by length, masks made on the spot, rotary embeddings, skips brought to one size, grids of anchors, states of
// zeros.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <tuple>
#include <vector>

namespace fx::testing {

namespace F = torch::nn::functional;

/// A block of GPT: one projection for query, key and value, a causal mask that is a buffer.
struct GptBlockImpl : torch::nn::Module {
  GptBlockImpl(std::int64_t width, std::int64_t heads, std::int64_t length) : heads(heads) {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
    out = register_module("out", torch::nn::Linear(width, width));
    mlp = register_module("mlp", torch::nn::Sequential(torch::nn::Linear(width, 2 * width), torch::nn::GELU(),
                                                       torch::nn::Linear(2 * width, width)));
    mask = register_buffer("mask", torch::tril(torch::ones({length, length})).view({1, 1, length, length}));
  }
  torch::Tensor forward(torch::Tensor x) {
    const std::int64_t b = x.size(0), t = x.size(1), c = x.size(2);
    const auto parts = qkv(norm(x)).split(c, 2);
    const auto head = [&](const torch::Tensor& y) { return y.view({b, t, heads, c / heads}).transpose(1, 2); };
    const torch::Tensor q = head(parts[0]), k = head(parts[1]), v = head(parts[2]);
    torch::Tensor att = torch::matmul(q, k.transpose(-2, -1)) * (1.0 / std::sqrt(static_cast<double>(k.size(-1))));
    using torch::indexing::Slice;
    att = att.masked_fill(mask.index({Slice(), Slice(), Slice(0, t), Slice(0, t)}) == 0, -1e9);
    const torch::Tensor y = torch::matmul(torch::softmax(att, -1), v).transpose(1, 2).contiguous().view({b, t, c});
    x = x + out(y);
    return x + mlp->forward(x);
  }
  std::int64_t heads;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear qkv{nullptr}, out{nullptr};
  torch::nn::Sequential mlp{nullptr};
  torch::Tensor mask;
};
TORCH_MODULE(GptBlock);

struct GptImpl : torch::nn::Module {
  GptImpl() {
    tokens = register_module("tokens", torch::nn::Embedding(17, 16));
    positions = register_module("positions", torch::nn::Embedding(24, 16));
    for (int i = 0; i < 2; ++i) blocks->push_back(GptBlock(16, 4, 24));
    register_module("blocks", blocks);
    head = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(16, 17).bias(false)));
  }
  torch::Tensor forward(const torch::Tensor& words) {
    const std::int64_t t = words.size(1);
    TORCH_CHECK(t <= 24, "the sequence is longer than the block");
    torch::Tensor x = tokens(words) + positions(torch::arange(0, t, torch::kLong).unsqueeze(0));
    for (const auto& block : *blocks) x = block->as<GptBlockImpl>()->forward(x);
    return head(x);
  }
  torch::nn::Embedding tokens{nullptr}, positions{nullptr};
  torch::nn::ModuleList blocks;
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Gpt);

/// A layer of Llama: RMS norm, rotary embeddings, a mask for more than one token, SwiGLU.
struct LlamaImpl : torch::nn::Module {
  LlamaImpl() {
    tokens = register_module("tokens", torch::nn::Embedding(17, 16));
    weight = register_parameter("weight", torch::rand({16}));
    const auto linear = [&](const char* name, std::int64_t in, std::int64_t out) {
      return register_module(name, torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false)));
    };
    wq = linear("wq", 16, 16), wk = linear("wk", 16, 8), wv = linear("wv", 16, 8), wo = linear("wo", 16, 16);
    w1 = linear("w1", 16, 24), w2 = linear("w2", 24, 16), w3 = linear("w3", 16, 24);
  }
  torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin) {
    const auto half = x.size(-1) / 2;
    const torch::Tensor a = x.slice(-1, 0, half), b = x.slice(-1, half, x.size(-1));
    return x * cos + torch::cat({-b, a}, -1) * sin;
  }
  torch::Tensor forward(const torch::Tensor& words) {
    const std::int64_t b = words.size(0), t = words.size(1);
    torch::Tensor x = tokens(words);
    const torch::Tensor n = x * torch::rsqrt(x.pow(2).mean(-1, true) + 1e-5) * weight;
    torch::Tensor q = wq(n).view({b, t, 4, 4}).transpose(1, 2), k = wk(n).view({b, t, 2, 4}).transpose(1, 2),
                  v = wv(n).view({b, t, 2, 4}).transpose(1, 2);
    const torch::Tensor inverse = 1.0 / torch::pow(10000.0, torch::arange(0, 4, 2, torch::kFloat) / 4);
    const torch::Tensor angles = torch::outer(torch::arange(t, torch::kFloat), inverse);
    const torch::Tensor both = torch::cat({angles, angles}, -1);
    q = rotate(q, both.cos(), both.sin());
    k = rotate(k, both.cos(), both.sin());
    const auto repeat = [&](const torch::Tensor& y) {
      return y.unsqueeze(2).expand({b, 2, 2, t, 4}).reshape({b, 4, t, 4});
    };
    torch::Tensor scores = torch::matmul(q, repeat(k).transpose(2, 3)) / std::sqrt(4.0);
    if (t > 1) scores = scores + torch::triu(torch::full({t, t}, -1e9), 1);
    x = x + wo(torch::matmul(torch::softmax(scores, -1), repeat(v)).transpose(1, 2).contiguous().view({b, t, -1}));
    return x + w2(torch::silu(w1(x)) * w3(x));
  }
  torch::nn::Embedding tokens{nullptr};
  torch::Tensor weight;
  torch::nn::Linear wq{nullptr}, wk{nullptr}, wv{nullptr}, wo{nullptr}, w1{nullptr}, w2{nullptr}, w3{nullptr};
};
TORCH_MODULE(Llama);

/// Two levels down and up; the way up is padded to the size of the skip.
struct UnetImpl : torch::nn::Module {
  explicit UnetImpl(bool pads) : pads(pads) {
    const auto conv = [&](const char* name, int in, int out) {
      return register_module(name,
                             torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1)),
                                                   torch::nn::BatchNorm2d(out), torch::nn::ReLU()));
    };
    first = conv("first", 3, 4), second = conv("second", 4, 8), third = conv("third", 8, 8);
    up1 = conv("up1", 16, 4), up2 = conv("up2", 8, 4);
    last = register_module("last", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 2, 1)));
  }
  torch::Tensor join(torch::Tensor x, const torch::Tensor& skip) {
    x = F::interpolate(
        x,
        F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kBilinear).align_corners(true));
    if (pads) {
      const auto h = skip.size(2) - x.size(2), w = skip.size(3) - x.size(3);
      x = F::pad(x, F::PadFuncOptions({w / 2, w - w / 2, h / 2, h - h / 2}));
    }
    return torch::cat({skip, x}, 1);
  }
  torch::Tensor forward(const torch::Tensor& image) {
    const torch::Tensor a = first->forward(image), b = second->forward(torch::max_pool2d(a, 2)),
                        c = third->forward(torch::max_pool2d(b, 2));
    return last(up2->forward(join(up1->forward(join(c, b)), a)));
  }
  bool pads;
  torch::nn::Sequential first{nullptr}, second{nullptr}, third{nullptr}, up1{nullptr}, up2{nullptr};
  torch::nn::Conv2d last{nullptr};
};
TORCH_MODULE(Unet);

/// Features and heads at two scales; pyramid levels and the mask are brought to the size of the others.
struct SegmenterImpl : torch::nn::Module {
  SegmenterImpl() {
    stem = register_module("stem", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 6, 3).stride(2).padding(1)));
    deep = register_module("deep", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 6, 3).stride(2).padding(1)));
    pooled = register_module("pooled", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 6, 1)));
    head = register_module("head", torch::nn::Conv2d(torch::nn::Conv2dOptions(18, 2, 1)));
  }
  static torch::Tensor resized(const torch::Tensor& x, at::IntArrayRef size) {
    return F::interpolate(x, F::InterpolateFuncOptions().size(size.vec()).mode(torch::kBilinear).align_corners(false));
  }
  torch::Tensor forward(const torch::Tensor& image) {
    const torch::Tensor low = torch::relu(stem(image)), high = torch::relu(deep(low));
    const torch::Tensor all = pooled(torch::adaptive_avg_pool2d(high, {1, 1}));
    const torch::Tensor joined =
        torch::cat({low, resized(high, low.sizes().slice(2)), resized(all, low.sizes().slice(2))}, 1);
    return resized(head(joined), image.sizes().slice(2));
  }
  torch::nn::Conv2d stem{nullptr}, deep{nullptr}, pooled{nullptr}, head{nullptr};
};
TORCH_MODULE(Segmenter);

/// The head of a one-stage detector: a grid of anchors as large as the features, boxes in pixels.
struct DetectorImpl : torch::nn::Module {
  DetectorImpl() {
    body = register_module("body", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(4).padding(1)));
    head = register_module("head", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 2 * 6, 1)));
    anchors = register_buffer("anchors", torch::tensor({{10.0F, 13.0F}, {16.0F, 30.0F}}));
  }
  torch::Tensor forward(const torch::Tensor& image) {
    torch::Tensor x = head(torch::leaky_relu(body(image), 0.1));
    const auto b = x.size(0), ny = x.size(2), nx = x.size(3);
    const auto stride = image.size(2) / ny;
    x = x.view({b, 2, 6, ny, nx}).permute({0, 1, 3, 4, 2}).contiguous();
    const auto grid = torch::meshgrid({torch::arange(ny), torch::arange(nx)}, "ij");
    const torch::Tensor places = torch::stack({grid[1], grid[0]}, 2).view({1, 1, ny, nx, 2}).to(torch::kFloat);
    const torch::Tensor y = torch::sigmoid(x);
    using torch::indexing::Ellipsis;
    using torch::indexing::Slice;
    const torch::Tensor xy = (y.index({Ellipsis, Slice(0, 2)}) * 2 - 0.5 + places) * stride;
    const torch::Tensor wh = torch::pow(y.index({Ellipsis, Slice(2, 4)}) * 2, 2) * anchors.view({1, 2, 1, 1, 2});
    const torch::Tensor scale = torch::tensor({static_cast<float>(image.size(3)), static_cast<float>(image.size(2))});
    return torch::cat({xy / scale, wh / scale, y.index({Ellipsis, Slice(4, torch::indexing::None)})}, -1)
        .view({b, -1, 6});
  }
  torch::nn::Conv2d body{nullptr}, head{nullptr};
  torch::Tensor anchors;
};
TORCH_MODULE(Detector);

/// Attention within windows of an image that is padded to hold a whole number of them.
struct SwinImpl : torch::nn::Module {
  SwinImpl() {
    embed = register_module("embed", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 2).stride(2)));
    qkv = register_module("qkv", torch::nn::Linear(8, 24));
    out = register_module("out", torch::nn::Linear(8, 8));
  }
  torch::Tensor forward(const torch::Tensor& image) {
    torch::Tensor x = embed(image).permute({0, 2, 3, 1});
    const auto b = x.size(0), h = x.size(1), w = x.size(2), c = x.size(3), m = std::int64_t{4};
    x = F::pad(x, F::PadFuncOptions({0, 0, 0, (m - w % m) % m, 0, (m - h % m) % m}));
    const auto hp = x.size(1), wp = x.size(2);
    torch::Tensor y =
        x.view({b, hp / m, m, wp / m, m, c}).permute({0, 1, 3, 2, 4, 5}).contiguous().view({-1, m * m, c});
    const auto n = y.size(0);
    const torch::Tensor parts = qkv(y).reshape({n, m * m, 3, 2, c / 2}).permute({2, 0, 3, 1, 4});
    const torch::Tensor att = torch::softmax(torch::matmul(parts[0], parts[1].transpose(-2, -1)), -1);
    y = out(torch::matmul(att, parts[2]).transpose(1, 2).reshape({n, m * m, c}));
    y = y.view({b, hp / m, wp / m, m, m, -1}).permute({0, 1, 3, 2, 4, 5}).contiguous().view({b, hp, wp, -1});
    return y.slice(1, 0, h).slice(2, 0, w).contiguous().view({b, h * w, c});
  }
  torch::nn::Conv2d embed{nullptr};
  torch::nn::Linear qkv{nullptr}, out{nullptr};
};
TORCH_MODULE(Swin);

/// Strided transposed convolutions from noise to an image.
struct GeneratorImpl : torch::nn::Module {
  GeneratorImpl() {
    using Options = torch::nn::ConvTranspose2dOptions;
    body = register_module(
        "body",
        torch::nn::Sequential(torch::nn::ConvTranspose2d(Options(10, 8, 4).bias(false)), torch::nn::BatchNorm2d(8),
                              torch::nn::ReLU(), torch::nn::ConvTranspose2d(Options(8, 4, 4).stride(2).padding(1)),
                              torch::nn::ReLU(), torch::nn::ConvTranspose2d(Options(4, 1, 4).stride(2).padding(1)),
                              torch::nn::Tanh()));
  }
  torch::Tensor forward(const torch::Tensor& noise) {
    return body->forward(noise.view({noise.size(0), noise.size(1), 1, 1}));
  }
  torch::nn::Sequential body{nullptr};
};
TORCH_MODULE(Generator);

/// Classifies sequences: an LSTM from states of zeros, its last step.
struct ClassifierImpl : torch::nn::Module {
  ClassifierImpl() {
    lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(6, 8).num_layers(2).batch_first(true)));
    head = register_module("head", torch::nn::Linear(8, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor zeros = torch::zeros({2, x.size(0), 8});
    const auto [steps, last] = lstm(x, std::make_tuple(zeros, zeros));
    return head(steps.select(1, x.size(1) - 1)) + head(std::get<0>(last)[1]);
  }
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Classifier);

/// Fully connected: flattened by the batch.
struct LenetImpl : torch::nn::Module {
  LenetImpl() {
    conv1 = register_module("conv1", torch::nn::Conv2d(1, 4, 5));
    conv2 = register_module("conv2", torch::nn::Conv2d(4, 6, 5));
    fc = register_module("fc", torch::nn::Linear(6 * 4 * 4, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return torch::log_softmax(fc(x.view({x.size(0), -1})), 1);
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Lenet);

/// An encoder with sinusoidal positions and a padding mask.
struct BertImpl : torch::nn::Module {
  BertImpl() {
    words = register_module("words", torch::nn::Embedding(19, 8));
    types = register_module("types", torch::nn::Embedding(2, 8));
    table = register_buffer("table", torch::rand({1, 30, 8}));
    query = register_module("query", torch::nn::Linear(8, 8));
    key = register_module("key", torch::nn::Linear(8, 8));
    value = register_module("value", torch::nn::Linear(8, 8));
    pool = register_module("pool", torch::nn::Linear(8, 8));
  }
  torch::Tensor forward(const torch::Tensor& ids, const torch::Tensor& mask) {
    using torch::indexing::Slice;
    const auto n = ids.size(1);
    const torch::Tensor x = words(ids) + types(torch::zeros_like(ids)) + table.index({Slice(), Slice(0, n)});
    const torch::Tensor extended = (1.0 - mask.unsqueeze(1).unsqueeze(2).to(torch::kFloat)) * -10000.0;
    const auto heads = [&](const torch::Tensor& y) {
      std::vector<std::int64_t> sizes(y.sizes().begin(), y.sizes().end() - 1);
      sizes.insert(sizes.end(), {2, 4});
      return y.view(sizes).permute({0, 2, 1, 3});
    };
    const torch::Tensor scores = torch::matmul(heads(query(x)), heads(key(x)).transpose(-1, -2)) / 2.0 + extended;
    torch::Tensor y = torch::matmul(torch::softmax(scores, -1), heads(value(x))).permute({0, 2, 1, 3}).contiguous();
    y = y.view({y.size(0), y.size(1), 8});
    const torch::Tensor kept = mask.unsqueeze(-1).to(torch::kFloat);
    return torch::tanh(pool((y * kept).sum(1) / kept.sum(1).clamp_min(1))) + y.select(1, 0);
  }
  torch::nn::Embedding words{nullptr}, types{nullptr};
  torch::Tensor table;
  torch::nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, pool{nullptr};
};
TORCH_MODULE(Bert);

/// Steps over time by hand: as many as the example has.
struct RnnByHandImpl : torch::nn::Module {
  RnnByHandImpl() {
    cell = register_module("cell", torch::nn::GRUCell(4, 5));
    head = register_module("head", torch::nn::Linear(5, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor state = torch::zeros({x.size(0), 5});
    std::vector<torch::Tensor> steps;
    for (std::int64_t i = 0; i < x.size(1); ++i) steps.push_back(head(state = cell(x.select(1, i), state)));
    return torch::stack(steps, 1);
  }
  torch::nn::GRUCell cell{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(RnnByHand);

}  // namespace fx::testing
