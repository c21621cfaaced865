// Models written in plain C++ LibTorch, as users write them: nothing in them knows of tracing.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

namespace fx::testing {

struct MlpImpl : torch::nn::Module {
  MlpImpl() {
    fc1 = register_module("fc1", torch::nn::Linear(8, 16));
    fc2 = register_module("fc2", torch::nn::Linear(16, 4));
  }
  torch::Tensor forward(const torch::Tensor& x) { return torch::log_softmax(fc2(torch::relu(fc1(x))), 1); }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(Mlp);

struct LeNetImpl : torch::nn::Module {
  LeNetImpl() {
    conv1 = register_module("conv1", torch::nn::Conv2d(1, 6, 5));
    conv2 = register_module("conv2", torch::nn::Conv2d(6, 16, 5));
    fc1 = register_module("fc1", torch::nn::Linear(16 * 4 * 4, 120));
    fc2 = register_module("fc2", torch::nn::Linear(120, 84));
    fc3 = register_module("fc3", torch::nn::Linear(84, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    x = x.view({x.size(0), -1});
    return fc3(torch::relu(fc2(torch::relu(fc1(x)))));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};
TORCH_MODULE(LeNet);

struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(int in, int out, int stride) {
    const auto conv3x3 = [](int from, int to, int step) {
      return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 3).stride(step).padding(1).bias(false));
    };
    conv1 = register_module("conv1", conv3x3(in, out, stride));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(out));
    conv2 = register_module("conv2", conv3x3(out, out, 1));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(out));
    if (stride != 1 || in != out) {
      downsample = register_module(
          "downsample",
          torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)),
                                torch::nn::BatchNorm2d(out)));
    }
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor identity = downsample ? downsample->forward(x) : x;
    torch::Tensor out = torch::relu(bn1(conv1(x)));
    out = bn2(conv2(out));
    out += identity;
    return torch::relu_(out);
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  torch::nn::Sequential downsample{nullptr};
};
TORCH_MODULE(BasicBlock);

/// ResNet-18, `width` times narrower than the original when that is less than 64.
struct ResNet18Impl : torch::nn::Module {
  explicit ResNet18Impl(int width = 64, int classes = 10) {
    conv1 = register_module("conv1",
                            torch::nn::Conv2d(torch::nn::Conv2dOptions(3, width, 7).stride(2).padding(3).bias(false)));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(width));
    maxpool = register_module("maxpool", torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)));
    int in = width;
    for (int stage = 0; stage < 4; ++stage) {
      const int out = width << stage;
      torch::nn::Sequential blocks(BasicBlock(in, out, stage == 0 ? 1 : 2), BasicBlock(out, out, 1));
      layers.push_back(register_module("layer" + std::to_string(stage + 1), blocks));
      in = out;
    }
    fc = register_module("fc", torch::nn::Linear(in, classes));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = maxpool(torch::relu(bn1(conv1(x))));
    for (torch::nn::Sequential& layer : layers) x = layer->forward(x);
    return fc(torch::flatten(torch::adaptive_avg_pool2d(x, {1, 1}), 1));
  }
  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::MaxPool2d maxpool{nullptr};
  std::vector<torch::nn::Sequential> layers;
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ResNet18);

/// Two levels down, two levels up, with skip connections.
struct UNetImpl : torch::nn::Module {
  UNetImpl() {
    down1 = register_module("down1", block(1, 4));
    down2 = register_module("down2", block(4, 8));
    bottom = register_module("bottom", block(8, 8));
    up2 = register_module("up2", block(16, 4));
    up1 = register_module("up1", block(8, 4));
    head = register_module("head", torch::nn::Conv2d(4, 1, 1));
    pool = register_module("pool", torch::nn::MaxPool2d(2));
    raise = register_module("raise", torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(8, 8, 2).stride(2)));
  }
  static torch::nn::Sequential block(int in, int out) {
    return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1)),
                                 torch::nn::BatchNorm2d(out), torch::nn::ReLU());
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor a = down1->forward(x);
    torch::Tensor b = down2->forward(pool(a));
    torch::Tensor c = raise(bottom->forward(pool(b)));
    torch::Tensor d = up2->forward(torch::cat({b, c}, 1));
    d = torch::upsample_nearest2d(d, {d.size(2) * 2, d.size(3) * 2});
    return torch::sigmoid(head(up1->forward(torch::cat({a, d}, 1))));
  }
  torch::nn::Sequential down1{nullptr}, down2{nullptr}, bottom{nullptr}, up2{nullptr}, up1{nullptr};
  torch::nn::Conv2d head{nullptr};
  torch::nn::MaxPool2d pool{nullptr};
  torch::nn::ConvTranspose2d raise{nullptr};
};
TORCH_MODULE(UNet);

}  // namespace fx::testing
