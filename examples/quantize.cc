// A small convolutional net in 8-bit numbers: after training, and while it trains.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 8, 3));
  torch::nn::BatchNorm2d bn = register_module("bn", torch::nn::BatchNorm2d(8));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(8, 4));
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(bn(conv(x)));
    return fc(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }
};

int main() {
  torch::manual_seed(0);
  auto net = std::make_shared<Net>();
  net->eval();
  const torch::Tensor x = torch::randn({2, 3, 16, 16});
  std::vector<torch::Tensor> samples;
  for (int i = 0; i < 8; ++i) samples.push_back(torch::randn({2, 3, 16, 16}));
  auto gm = fx::symbolic_trace(net, {x});
  {
    // [static]
    auto prepared = fx::prepare(*gm, fx::QuantConfig::defaults(), {x});
    for (const torch::Tensor& batch : samples) prepared->forward(batch);
    auto int8 = fx::convert(*prepared);
    std::cout << fx::compare_activations(*gm, *int8, samples);  // worst node first, in dB
    // [end]
    // [reasons]
    for (const fx::QuantReason& each : fx::quantization_reasons(*prepared))
      std::cout << each.node << (each.quantized ? " quantized " : " float ") << each.reason << "\n";
    // [end]
    // [reference]
    auto reference = fx::convert(*prepared, {.backend = fx::QuantBackend::reference});
    reference->graph().print_tabular();
    // [end]
    // [keep float]
    std::vector<std::vector<c10::IValue>> inputs;
    for (const torch::Tensor& batch : samples) inputs.push_back({batch});
    fx::KeptFloat kept = fx::keep_float_for(*prepared, *gm, inputs, {.min_sqnr_db = 35});
    auto careful = fx::convert(*prepared, {.keep_float = kept.nodes});
    // [end]
    // [bias]
    fx::correct_bias(*prepared, inputs);
    // [end]
    if (fx::compare_outputs(*gm, *careful, inputs).output.sqnr_db < 30) return 1;
  }
  {
    // [config]
    fx::QuantConfig config = fx::QuantConfig::defaults();
    config.keep_float_paths({"fc"});  // RE2, on the path of a module
    config.types.push_back(
        {"Conv2d", {.weight = {.dtype = fx::DType::qint8, .symmetric = true, .per_channel = false}}});
    auto prepared = fx::prepare(*gm, config, {x});
    // [end]
  }
  {
    // [dynamic]
    auto int8 = fx::convert(*fx::prepare(*gm, fx::QuantConfig::dynamic(), {x}));  // no samples needed
    // [end]
    std::cout << int8->forward(x).sizes() << "\n";
  }
  {
    const torch::Tensor labels = torch::zeros({2}, torch::kLong);
    // [training]
    auto prepared = fx::prepare_qat(*gm, fx::QuantConfig::training(), {x});
    torch::optim::SGD sgd(prepared->parameters(), 0.01);
    for (const torch::Tensor& batch : samples) {
      sgd.zero_grad();
      torch::nll_loss(prepared->forward(batch).log_softmax(1), labels).backward();
      sgd.step();
    }
    auto int8 = fx::convert(*prepared);
    // [end]
    std::cout << int8->forward(x).sizes() << "\n";
  }
  return 0;
}
