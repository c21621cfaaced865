#include <fxgraph/testing/hostile/modules.h>

#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/text/parse.h>

namespace fx::hostile {

namespace nn = torch::nn;

namespace {

std::shared_ptr<nn::Module> new_module(Random& random, std::int64_t n) {
  switch (random.below(20)) {
    case 0:
    case 1: return nn::Linear(nn::LinearOptions(n, n).bias(random.chance(60))).ptr();
    case 2: {
      const auto options = nn::BatchNorm1dOptions(n).affine(random.chance(60));
      return nn::BatchNorm1d(nn::BatchNorm1dOptions(options).track_running_stats(random.chance(85))).ptr();
    }
    case 3: return nn::Dropout(0.5).ptr();
    case 4: return nn::ReLU(nn::ReLUOptions(random.chance(50))).ptr();
    case 5: return nn::Identity().ptr();
    case 6: return nn::LayerNorm(nn::LayerNormOptions({n})).ptr();
    case 7: return nn::Conv2d(nn::Conv2dOptions(n, n, 1).bias(random.chance(60))).ptr();
    case 8: return nn::GroupNorm(nn::GroupNormOptions(1, n)).ptr();
    case 9: return nn::PReLU().ptr();
    case 10: return nn::GELU().ptr();
    case 11: return nn::Softmax(nn::SoftmaxOptions(-1)).ptr();
    case 12: return nn::LeakyReLU(nn::LeakyReLUOptions().inplace(random.chance(50))).ptr();
    case 13: return nn::InstanceNorm2d(nn::InstanceNorm2dOptions(n).track_running_stats(random.chance(50))).ptr();
    case 14: {
      nn::Sequential layers(nn::Linear(n, n), nn::ReLU(nn::ReLUOptions(random.chance(50))), nn::BatchNorm1d(n));
      layers->children()[2]->train(random.chance(30));
      return layers.ptr();
    }
    case 15: return nn::BatchNorm1d(nn::BatchNorm1dOptions(n).momentum(c10::nullopt)).ptr();
    case 16: return nn::Hardtanh(nn::HardtanhOptions().inplace(random.chance(50))).ptr();
    case 17: return nn::Dropout(nn::DropoutOptions(0.5).inplace(random.chance(50))).ptr();
    case 18: return draw_nested(random);
    default: return nn::BatchNorm2d(n).ptr();
  }
}

/// Calls the module if it is of one of these types.
template <typename... Types>
at::Tensor call_one_of(nn::Module& module, const at::Tensor& input) {
  at::Tensor result;
  const bool found = ((module.as<Types>() ? (result = module.as<Types>()->forward(input), true) : false) || ...);
  if (!found) throw std::invalid_argument("no module of draw_module");
  return result;
}

}  // namespace

std::shared_ptr<GraphModule> draw_nested(Random& random) {
  // What a graph may do to what it is given, and to what it holds.
  constexpr std::array kBodies = {
      "%r = call_function[target=aten::relu](args = (%x,))\nreturn r",
      "%r = call_function[target=aten::add_.Scalar](args = (%x, 1))\nreturn x",
      "return x",
      "%r = call_function[target=aten::unsqueeze](args = (%x, 0))\nreturn r",
      "%w = get_attr[target=w]\n%r = call_function[target=aten::mul.Tensor](args = (%x, %w))\nreturn r",
      "%w = get_attr[target=w]\n%a = call_function[target=aten::add_.Scalar](args = (%w, 1))\n"
      "%r = call_function[target=aten::mul.Tensor](args = (%x, %w))\nreturn r",
      "%w = get_attr[target=w]\nreturn w",
      "%r = call_function[target=aten::nonzero](args = (%x,))\nreturn r",
      "%r = call_function[target=aten::zero_](args = (%x,))\n%s = call_function[target=aten::sum](args = (%x,))\n"
      "return s",
      "%r = call_function[target=aten::dropout](args = (%x, 0.5, True))\nreturn r",
      "%r = call_function[target=aten::neg](args = (%x,))\n%s = call_function[target=aten::relu_](args = "
      "(%r,))\nreturn r",
  };
  GraphModule::Attributes attributes = {{"w", at::full({}, 1.5)}};
  return std::make_shared<GraphModule>(
      attributes, parse_graph(std::string("graph():\n%x = placeholder[target=x]\n") + random.pick(kBodies)));
}

std::shared_ptr<nn::Module> draw_module(Random& random, std::int64_t n) {
  auto module = new_module(random, std::max<std::int64_t>(n, 1));
  if (module->as<nn::Sequential>() && random.chance(50)) return module;  // each part in its own mode
  module->train(random.chance(30));
  return module;
}

std::optional<TensorForm> input_form(const nn::Module& module, std::int64_t n) {
  if (module.as<nn::Dropout>() || module.as<nn::ReLU>() || module.as<nn::Identity>() || module.as<nn::GELU>() ||
      module.as<nn::LeakyReLU>() || module.as<nn::Softmax>() || module.as<nn::PReLU>() || module.as<nn::Hardtanh>() ||
      dynamic_cast<const GraphModule*>(&module))
    return {};
  if (module.as<nn::Conv2d>() || module.as<nn::BatchNorm2d>() || module.as<nn::InstanceNorm2d>())
    return TensorForm{{2, n, n, n}, at::kFloat};
  return TensorForm{{n, n}, at::kFloat};
}

at::Tensor call_module(nn::Module& module, const at::Tensor& input) {
  if (auto* nested = dynamic_cast<GraphModule*>(&module)) return nested->run({input}).toTensor();
  return call_one_of<nn::Linear, nn::BatchNorm1d, nn::Dropout, nn::ReLU, nn::Identity, nn::LayerNorm, nn::Conv2d,
                     nn::BatchNorm2d, nn::GroupNorm, nn::PReLU, nn::GELU, nn::Softmax, nn::LeakyReLU,
                     nn::InstanceNorm2d, nn::Hardtanh, nn::Sequential>(module, input);
}

}  // namespace fx::hostile
