#include <fxgraph/nn/nn_row.h>

namespace fx::internal {
namespace {

namespace nn = torch::nn;

void add_activations_with_options(const TorchFile& file) {
  const auto in_place = described(taking(), FX_OPTION(inplace));
  const auto alpha = described(taking(), FX_OPTION(alpha), FX_OPTION(inplace));
  const auto lambda = described(taking(), FX_OPTION(lambda, "lambd"));
  const auto dim = described(taking(FX_OPTION(dim)));
  file.add<nn::ReLUImpl>("ReLU", in_place, {.body = relu_body});
  file.add<nn::ReLU6Impl>("ReLU6", in_place, {.body = relu6_body});
  file.add<nn::SELUImpl>("SELU", in_place);
  file.add<nn::ELUImpl>("ELU", alpha);
  file.add<nn::CELUImpl>("CELU", alpha);
  file.add<nn::GELUImpl>("GELU", described(taking(), FX_OPTION(approximate)));
  file.add<nn::LeakyReLUImpl>("LeakyReLU", described(taking(), FX_OPTION(negative_slope), FX_OPTION(inplace)));
  file.add<nn::PReLUImpl>("PReLU", described(taking(), FX_OPTION(num_parameters), FX_OPTION(init)));
  file.add<nn::RReLUImpl>("RReLU", described(taking(), FX_OPTION(lower), FX_OPTION(upper), FX_OPTION(inplace)),
                          {.follows_mode = [](const nn::Module&) { return true; }});  // draws slopes in training
  file.add<nn::HardtanhImpl>("Hardtanh",
                             described(taking(), FX_OPTION(min_val), FX_OPTION(max_val), FX_OPTION(inplace)));
  file.add<nn::SoftplusImpl>("Softplus", described(taking(), FX_OPTION(beta), FX_OPTION(threshold)));
  file.add<nn::HardshrinkImpl>("Hardshrink", lambda);
  file.add<nn::SoftshrinkImpl>("Softshrink", lambda);
  file.add<nn::ThresholdImpl>("Threshold",
                              described(taking(FX_OPTION(threshold), FX_OPTION(value)), FX_OPTION(inplace)));
  file.add<nn::GLUImpl>("GLU", dim);
  file.add<nn::SoftmaxImpl>("Softmax", dim);
  file.add<nn::SoftminImpl>("Softmin", dim);
  file.add<nn::LogSoftmaxImpl>("LogSoftmax", dim);
}

}  // namespace

void add_activation_rows(TorchRows& rows) {
  const TorchFile file(rows, "activation");
  add_activations_with_options(file);
  file.add_plain<nn::SigmoidImpl>("Sigmoid", {.body = sigmoid_body});
  file.add_plain<nn::TanhImpl>("Tanh", {.body = tanh_body});
  file.add_plain<nn::SiLUImpl>("SiLU", {.body = silu_body});
  file.add_plain<nn::MishImpl>("Mish");
  file.add_plain<nn::SoftsignImpl>("Softsign");
  file.add_plain<nn::Softmax2dImpl>("Softmax2d");
  file.add_plain<nn::LogSigmoidImpl>("LogSigmoid");
  file.add_plain<nn::TanhshrinkImpl>("Tanhshrink");
  file.add_name("Hardswish");
  file.add_name("Hardsigmoid");
}

}  // namespace fx::internal
