#include <fxgraph/rewriter/program/hostile/modules.h>

#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <stdexcept>

namespace fx::hostile {

namespace nn = torch::nn;

namespace {

std::shared_ptr<nn::Module> new_module(Random& random, std::int64_t n) {
  switch (random.below(15)) {
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

std::shared_ptr<nn::Module> draw_module(Random& random, std::int64_t n) {
  auto module = new_module(random, std::max<std::int64_t>(n, 1));
  module->train(random.chance(30));
  return module;
}

std::optional<TensorForm> input_form(const nn::Module& module, std::int64_t n) {
  if (module.as<nn::Dropout>() || module.as<nn::ReLU>() || module.as<nn::Identity>() || module.as<nn::GELU>() ||
      module.as<nn::LeakyReLU>() || module.as<nn::Softmax>() || module.as<nn::PReLU>())
    return {};
  if (module.as<nn::Conv2d>() || module.as<nn::BatchNorm2d>() || module.as<nn::InstanceNorm2d>())
    return TensorForm{{2, n, n, n}, at::kFloat};
  return TensorForm{{n, n}, at::kFloat};
}

at::Tensor call_module(nn::Module& module, const at::Tensor& input) {
  return call_one_of<nn::Linear, nn::BatchNorm1d, nn::Dropout, nn::ReLU, nn::Identity, nn::LayerNorm, nn::Conv2d,
                     nn::BatchNorm2d, nn::GroupNorm, nn::PReLU, nn::GELU, nn::Softmax, nn::LeakyReLU,
                     nn::InstanceNorm2d>(module, input);
}

}  // namespace fx::hostile
