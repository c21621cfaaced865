#include <fxgraph/nn/nn_bodies.h>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>

#include <string>
#include <vector>

namespace fx::internal {
namespace {

namespace nn = torch::nn;

template <std::size_t N>
Argument list_of(const torch::ExpandingArray<N>& values) {
  return Argument::list(std::vector<Argument>(values->begin(), values->end()));
}

/// A graph of one call on one input.
struct Body {
  Graph graph;
  Node& input = graph.placeholder("input");

  Argument tensor(const char* name, const torch::Tensor& value) {
    return value.defined() ? Argument(graph.get_attr(name)) : Argument();
  }
  std::optional<Graph> returning(const std::string& target, ArgumentSpan args) {
    graph.output(graph.call_function(target, args));
    return std::move(graph);
  }
};

std::optional<Graph> pointwise(const char* target, bool in_place = false) {
  Body body;
  return body.returning(in_place ? std::string(target) + "_" : std::string(target), {Argument(body.input)});
}

// get_if here and below is found by its argument: in c10 for the older versions of LibTorch, in std for the later ones.
template <typename Options>
std::optional<Argument> padding_of(const Options& options) {
  using Padding = std::decay_t<decltype(options.padding())>;
  const Padding& padding = options.padding();
  if (const auto* numbers = get_if<0>(&padding)) return list_of(*numbers);
  if (get_if<torch::enumtype::kSame>(&padding)) return Argument("same");
  return Argument("valid");
}

template <int dims, typename Impl>
std::optional<Graph> conv_graph(const nn::Module& module) {
  const auto& conv = dynamic_cast<const Impl&>(module);
  if (!get_if<torch::enumtype::kZeros>(&conv.options.padding_mode())) return std::nullopt;
  const std::optional<Argument> padding = padding_of(conv.options);
  const std::string target = "aten::conv" + std::to_string(dims) + "d" + (padding->is_string() ? ".padding" : "");
  Body body;
  const Argument weight = body.tensor("weight", conv.weight);
  const Argument bias = body.tensor("bias", conv.bias);
  return body.returning(target, {Argument(body.input), weight, bias, list_of(conv.options.stride()), *padding,
                                 list_of(conv.options.dilation()), Argument(conv.options.groups())});
}

template <int dims, typename Impl>
std::optional<Graph> conv_transpose_graph(const nn::Module& module) {
  const auto& conv = dynamic_cast<const Impl&>(module);
  const std::optional<Argument> padding = padding_of(conv.options);
  if (!get_if<torch::enumtype::kZeros>(&conv.options.padding_mode()) || padding->is_string()) return std::nullopt;
  Body body;
  const Argument weight = body.tensor("weight", conv.weight);
  const Argument bias = body.tensor("bias", conv.bias);
  const std::string target = "aten::conv_transpose" + std::to_string(dims) + "d" + (dims == 1 ? "" : ".input");
  return body.returning(target, {Argument(body.input), weight, bias, list_of(conv.options.stride()), *padding,
                                 list_of(conv.options.output_padding()), Argument(conv.options.groups()),
                                 list_of(conv.options.dilation())});
}

template <typename Impl, bool evaluated>
std::optional<Graph> batch_norm_graph(const nn::Module& module) {
  const auto& norm = dynamic_cast<const Impl&>(module);
  if ((norm.is_training() && !evaluated) || !norm.running_mean.defined())
    return std::nullopt;  // reads or writes batch statistics
  Body body;
  const Argument weight = body.tensor("weight", norm.weight);
  const Argument bias = body.tensor("bias", norm.bias);
  const Argument mean = body.tensor("running_mean", norm.running_mean);
  const Argument variance = body.tensor("running_var", norm.running_var);
  const double momentum = norm.options.momentum().value_or(0.0);
  return body.returning("aten::batch_norm", {Argument(body.input), weight, bias, mean, variance, Argument(false),
                                             Argument(momentum), Argument(norm.options.eps()), Argument(true)});
}

template <int dims, typename Impl>
std::optional<Graph> max_pool_graph(const nn::Module& module) {
  const auto& options = dynamic_cast<const Impl&>(module).options;
  Body body;
  return body.returning("aten::max_pool" + std::to_string(dims) + "d",
                        {Argument(body.input), list_of(options.kernel_size()), list_of(options.stride()),
                         list_of(options.padding()), list_of(options.dilation()), Argument(options.ceil_mode())});
}

}  // namespace

NnBody conv_body(int dims) {
  return dims == 1   ? conv_graph<1, nn::Conv1dImpl>
         : dims == 2 ? conv_graph<2, nn::Conv2dImpl>
                     : conv_graph<3, nn::Conv3dImpl>;
}

NnBody conv_transpose_body(int dims) {
  return dims == 1   ? conv_transpose_graph<1, nn::ConvTranspose1dImpl>
         : dims == 2 ? conv_transpose_graph<2, nn::ConvTranspose2dImpl>
                     : conv_transpose_graph<3, nn::ConvTranspose3dImpl>;
}

template <bool evaluated>
static NnBody batch_norm_of(int dims) {
  return dims == 1   ? batch_norm_graph<nn::BatchNorm1dImpl, evaluated>
         : dims == 2 ? batch_norm_graph<nn::BatchNorm2dImpl, evaluated>
                     : batch_norm_graph<nn::BatchNorm3dImpl, evaluated>;
}

NnBody batch_norm_body(int dims, bool evaluated) {
  return evaluated ? batch_norm_of<true>(dims) : batch_norm_of<false>(dims);
}

NnBody max_pool_body(int dims) {
  return dims == 1   ? max_pool_graph<1, nn::MaxPool1dImpl>
         : dims == 2 ? max_pool_graph<2, nn::MaxPool2dImpl>
                     : max_pool_graph<3, nn::MaxPool3dImpl>;
}

std::optional<Graph> avg_pool2d_body(const nn::Module& module) {
  const auto& options = dynamic_cast<const nn::AvgPool2dImpl&>(module).options;
  Body body;
  const auto divisor = options.divisor_override();
  return body.returning("aten::avg_pool2d",
                        {Argument(body.input), list_of(options.kernel_size()), list_of(options.stride()),
                         list_of(options.padding()), Argument(options.ceil_mode()),
                         Argument(options.count_include_pad()), divisor ? Argument(*divisor) : Argument()});
}

std::optional<Graph> adaptive_avg_pool2d_body(const nn::Module& module) {
  std::vector<Argument> size;
  for (const auto& one : *dynamic_cast<const nn::AdaptiveAvgPool2dImpl&>(module).options.output_size()) {
    if (!one) return std::nullopt;  // the input's own size
    size.emplace_back(*one);
  }
  Body body;
  return body.returning("aten::adaptive_avg_pool2d", {Argument(body.input), Argument::list(size)});
}

std::optional<Graph> linear_body(const nn::Module& module) {
  const auto& linear = dynamic_cast<const nn::LinearImpl&>(module);
  Body body;
  const Argument weight = body.tensor("weight", linear.weight);
  const Argument bias = body.tensor("bias", linear.bias);
  return body.returning("aten::linear", {Argument(body.input), weight, bias});
}

std::optional<Graph> relu_body(const nn::Module& module) {
  return pointwise("aten::relu", dynamic_cast<const nn::ReLUImpl&>(module).options.inplace());
}
std::optional<Graph> relu6_body(const nn::Module& module) {
  return pointwise("aten::relu6", dynamic_cast<const nn::ReLU6Impl&>(module).options.inplace());
}
std::optional<Graph> silu_body(const nn::Module&) { return pointwise("aten::silu"); }
std::optional<Graph> sigmoid_body(const nn::Module&) { return pointwise("aten::sigmoid"); }
std::optional<Graph> tanh_body(const nn::Module&) { return pointwise("aten::tanh"); }

std::optional<Graph> identity_body(const nn::Module&) {
  Body body;
  body.graph.output(body.input);
  return std::move(body.graph);
}

std::optional<Graph> flatten_body(const nn::Module& module) {
  const auto& options = dynamic_cast<const nn::FlattenImpl&>(module).options;
  Body body;
  return body.returning("aten::flatten.using_ints",
                        {Argument(body.input), Argument(options.start_dim()), Argument(options.end_dim())});
}

std::optional<Graph> layer_norm_body(const nn::Module& module) {
  const auto& norm = dynamic_cast<const nn::LayerNormImpl&>(module);
  const auto& shape = norm.options.normalized_shape();
  Body body;
  const Argument weight = body.tensor("weight", norm.weight);
  const Argument bias = body.tensor("bias", norm.bias);
  return body.returning("aten::layer_norm",
                        {Argument(body.input), Argument::list(std::vector<Argument>(shape.begin(), shape.end())),
                         weight, bias, Argument(norm.options.eps())});
}

std::optional<Graph> group_norm_body(const nn::Module& module) {
  const auto& norm = dynamic_cast<const nn::GroupNormImpl&>(module);
  Body body;
  const Argument weight = body.tensor("weight", norm.weight);
  const Argument bias = body.tensor("bias", norm.bias);
  return body.returning("aten::group_norm", {Argument(body.input), Argument(norm.options.num_groups()), weight, bias,
                                             Argument(norm.options.eps())});
}

std::optional<Graph> embedding_body(const nn::Module& module) {
  const auto& embedding = dynamic_cast<const nn::EmbeddingImpl&>(module);
  if (embedding.options.max_norm()) return std::nullopt;  // writes its weight
  Body body;
  const Argument weight = body.tensor("weight", embedding.weight);
  return body.returning("aten::embedding",
                        {weight, Argument(body.input), Argument(embedding.options.padding_idx().value_or(-1)),
                         Argument(embedding.options.scale_grad_by_freq()), Argument(embedding.options.sparse())});
}

}  // namespace fx::internal
