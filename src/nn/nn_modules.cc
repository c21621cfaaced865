#include <fxgraph/nn/nn_modules.h>

#include <torch/nn/functional/instancenorm.h>  // which modules.h uses without including it
#include <torch/nn/modules.h>

#include <mutex>
#include <type_traits>
#include <unordered_map>

#include <fxgraph/nn/nn_bodies.h>

namespace fx {
namespace {

namespace nn = torch::nn;
using internal::NnBody;

using ModuleTypes = std::unordered_map<std::type_index, ModuleType>;

using OptionBytes = std::vector<std::span<const std::byte>>;

template <typename T>
std::span<const std::byte> bytes_of(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

// The bytes of the options; those behind a vector's pointer too.
template <typename Impl>
OptionBytes options_of(const torch::nn::Module& module) {
  const auto& impl = dynamic_cast<const Impl&>(module);
  OptionBytes bytes;
  if constexpr (requires { impl.options; }) bytes.push_back(bytes_of(impl.options));
  if constexpr (requires { impl.options.normalized_shape(); })
    bytes.push_back(std::as_bytes(std::span(impl.options.normalized_shape())));
  return bytes;
}

// A derived class may name what RNNImplBase protects.
template <typename Impl>
struct RecurrentWeights : nn::detail::RNNImplBase<Impl> {
  static std::vector<torch::Tensor>& of(Impl& module) { return module.*(&RecurrentWeights::flat_weights_); }
};

// The members of torch::nn's modules that are tensors; recurrent ones have theirs in a list.
template <typename Impl>
std::vector<torch::Tensor*> tensors_of(torch::nn::Module& module) {
  auto& impl = dynamic_cast<Impl&>(module);
  std::vector<torch::Tensor*> tensors;
  if constexpr (std::is_base_of_v<nn::detail::RNNImplBase<Impl>, Impl>) {
    for (torch::Tensor& each : RecurrentWeights<Impl>::of(impl)) tensors.push_back(&each);
  }
#define FX_TENSOR(name) \
  if constexpr (requires { impl.name.unsafeGetTensorImpl(); }) tensors.push_back(&impl.name)
  FX_TENSOR(weight);
  FX_TENSOR(bias);
  FX_TENSOR(running_mean);
  FX_TENSOR(running_var);
  FX_TENSOR(num_batches_tracked);
  FX_TENSOR(weight_ih);
  FX_TENSOR(weight_hh);
  FX_TENSOR(bias_ih);
  FX_TENSOR(bias_hh);
  FX_TENSOR(in_proj_weight);
  FX_TENSOR(in_proj_bias);
  FX_TENSOR(q_proj_weight);
  FX_TENSOR(k_proj_weight);
  FX_TENSOR(v_proj_weight);
  FX_TENSOR(bias_k);
  FX_TENSOR(bias_v);
#undef FX_TENSOR
  return tensors;
}

template <typename Impl>
void add(ModuleTypes& table, const char* name, NnBody body = nullptr) {
  table.emplace(typeid(Impl), ModuleType{qualify_module_type(name), &internal::call_forward<Impl>, body,
                                         &options_of<Impl>, &tensors_of<Impl>});
}

void add_convolutions(ModuleTypes& table) {
  add<nn::Conv1dImpl>(table, "Conv1d", internal::conv_body(1));
  add<nn::Conv2dImpl>(table, "Conv2d", internal::conv_body(2));
  add<nn::Conv3dImpl>(table, "Conv3d", internal::conv_body(3));
  add<nn::ConvTranspose1dImpl>(table, "ConvTranspose1d", internal::conv_transpose_body(1));
  add<nn::ConvTranspose2dImpl>(table, "ConvTranspose2d", internal::conv_transpose_body(2));
  add<nn::ConvTranspose3dImpl>(table, "ConvTranspose3d", internal::conv_transpose_body(3));
}

void add_norms_and_linear(ModuleTypes& table) {
  add<nn::BatchNorm1dImpl>(table, "BatchNorm1d", internal::batch_norm_body(1));
  add<nn::BatchNorm2dImpl>(table, "BatchNorm2d", internal::batch_norm_body(2));
  add<nn::BatchNorm3dImpl>(table, "BatchNorm3d", internal::batch_norm_body(3));
  add<nn::InstanceNorm1dImpl>(table, "InstanceNorm1d");
  add<nn::InstanceNorm2dImpl>(table, "InstanceNorm2d");
  add<nn::InstanceNorm3dImpl>(table, "InstanceNorm3d");
  add<nn::LayerNormImpl>(table, "LayerNorm", internal::layer_norm_body);
  add<nn::GroupNormImpl>(table, "GroupNorm", internal::group_norm_body);
  add<nn::LocalResponseNormImpl>(table, "LocalResponseNorm");
  add<nn::LinearImpl>(table, "Linear", internal::linear_body);
  add<nn::BilinearImpl>(table, "Bilinear");
  add<nn::IdentityImpl>(table, "Identity", internal::identity_body);
  add<nn::FlattenImpl>(table, "Flatten", internal::flatten_body);
  add<nn::EmbeddingImpl>(table, "Embedding", internal::embedding_body);
  add<nn::EmbeddingBagImpl>(table, "EmbeddingBag");
}

void add_activations(ModuleTypes& table) {
  add<nn::ReLUImpl>(table, "ReLU", internal::relu_body);
  add<nn::ReLU6Impl>(table, "ReLU6", internal::relu6_body);
  add<nn::SigmoidImpl>(table, "Sigmoid", internal::sigmoid_body);
  add<nn::TanhImpl>(table, "Tanh", internal::tanh_body);
  add<nn::SiLUImpl>(table, "SiLU", internal::silu_body);
  add<nn::GELUImpl>(table, "GELU");
  add<nn::MishImpl>(table, "Mish");
  add<nn::ELUImpl>(table, "ELU");
  add<nn::SELUImpl>(table, "SELU");
  add<nn::CELUImpl>(table, "CELU");
  add<nn::GLUImpl>(table, "GLU");
  add<nn::LeakyReLUImpl>(table, "LeakyReLU");
  add<nn::PReLUImpl>(table, "PReLU");
  add<nn::RReLUImpl>(table, "RReLU");
  add<nn::HardtanhImpl>(table, "Hardtanh");
  add<nn::SoftplusImpl>(table, "Softplus");
  add<nn::SoftsignImpl>(table, "Softsign");
  add<nn::SoftmaxImpl>(table, "Softmax");
  add<nn::SoftminImpl>(table, "Softmin");
  add<nn::Softmax2dImpl>(table, "Softmax2d");
  add<nn::LogSoftmaxImpl>(table, "LogSoftmax");
  add<nn::LogSigmoidImpl>(table, "LogSigmoid");
  add<nn::ThresholdImpl>(table, "Threshold");
  add<nn::HardshrinkImpl>(table, "Hardshrink");
  add<nn::SoftshrinkImpl>(table, "Softshrink");
  add<nn::TanhshrinkImpl>(table, "Tanhshrink");
  add<nn::MultiheadAttentionImpl>(table, "MultiheadAttention");
}

void add_pools_and_padding(ModuleTypes& table) {
  add<nn::MaxPool1dImpl>(table, "MaxPool1d", internal::max_pool_body(1));
  add<nn::MaxPool2dImpl>(table, "MaxPool2d", internal::max_pool_body(2));
  add<nn::MaxPool3dImpl>(table, "MaxPool3d", internal::max_pool_body(3));
  add<nn::AvgPool1dImpl>(table, "AvgPool1d");
  add<nn::AvgPool2dImpl>(table, "AvgPool2d", internal::avg_pool2d_body);
  add<nn::AvgPool3dImpl>(table, "AvgPool3d");
  add<nn::AdaptiveAvgPool1dImpl>(table, "AdaptiveAvgPool1d");
  add<nn::AdaptiveAvgPool2dImpl>(table, "AdaptiveAvgPool2d", internal::adaptive_avg_pool2d_body);
  add<nn::AdaptiveAvgPool3dImpl>(table, "AdaptiveAvgPool3d");
  add<nn::AdaptiveMaxPool1dImpl>(table, "AdaptiveMaxPool1d");
  add<nn::AdaptiveMaxPool2dImpl>(table, "AdaptiveMaxPool2d");
  add<nn::AdaptiveMaxPool3dImpl>(table, "AdaptiveMaxPool3d");
  add<nn::LPPool1dImpl>(table, "LPPool1d");
  add<nn::LPPool2dImpl>(table, "LPPool2d");
  add<nn::ReflectionPad1dImpl>(table, "ReflectionPad1d");
  add<nn::ReflectionPad2dImpl>(table, "ReflectionPad2d");
  add<nn::ReplicationPad1dImpl>(table, "ReplicationPad1d");
  add<nn::ReplicationPad2dImpl>(table, "ReplicationPad2d");
  add<nn::ReplicationPad3dImpl>(table, "ReplicationPad3d");
  add<nn::ConstantPad1dImpl>(table, "ConstantPad1d");
  add<nn::ConstantPad2dImpl>(table, "ConstantPad2d");
  add<nn::ConstantPad3dImpl>(table, "ConstantPad3d");
  add<nn::ZeroPad2dImpl>(table, "ZeroPad2d");
  add<nn::UpsampleImpl>(table, "Upsample");
  add<nn::PixelShuffleImpl>(table, "PixelShuffle");
  add<nn::PixelUnshuffleImpl>(table, "PixelUnshuffle");
  add<nn::FoldImpl>(table, "Fold");
  add<nn::UnfoldImpl>(table, "Unfold");
}

void add_the_rest(ModuleTypes& table) {
  add<nn::DropoutImpl>(table, "Dropout", internal::dropout_body);
  add<nn::Dropout2dImpl>(table, "Dropout2d", internal::feature_dropout_body);
  add<nn::Dropout3dImpl>(table, "Dropout3d", internal::feature_dropout_body);
  add<nn::AlphaDropoutImpl>(table, "AlphaDropout", internal::alpha_dropout_body);
  add<nn::FeatureAlphaDropoutImpl>(table, "FeatureAlphaDropout", internal::feature_alpha_dropout_body);
  add<nn::LSTMImpl>(table, "LSTM");
  add<nn::GRUImpl>(table, "GRU");
  add<nn::RNNImpl>(table, "RNN");
  add<nn::LSTMCellImpl>(table, "LSTMCell");
  add<nn::GRUCellImpl>(table, "GRUCell");
  add<nn::RNNCellImpl>(table, "RNNCell");
  add<nn::CosineSimilarityImpl>(table, "CosineSimilarity");
  add<nn::PairwiseDistanceImpl>(table, "PairwiseDistance");
  add<nn::TransformerEncoderLayerImpl>(table, "TransformerEncoderLayer");
  add<nn::TransformerDecoderLayerImpl>(table, "TransformerDecoderLayer");
  add<nn::TransformerEncoderImpl>(table, "TransformerEncoder");
  add<nn::TransformerDecoderImpl>(table, "TransformerDecoder");
  add<nn::TransformerImpl>(table, "Transformer");
}

struct Registry {
  std::mutex mutex;
  ModuleTypes table;
  Registry() {
    add_convolutions(table);
    add_norms_and_linear(table);
    add_activations(table);
    add_pools_and_padding(table);
    add_the_rest(table);
  }
};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

}  // namespace

const ModuleType* find_module_type(const torch::nn::Module& module) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.table.find(typeid(module));
  return found == all.table.end() ? nullptr : &found->second;
}

void add_module_type(std::type_index type, ModuleType entry) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.table.emplace(type, std::move(entry));
}

std::shared_ptr<LeafModule> leaf_from_module(const torch::nn::Module& module) {
  const ModuleType* type = find_module_type(module);
  if (!type || !type->body) return nullptr;
  std::optional<Graph> body = type->body(module);
  if (!body) return nullptr;
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.push_back({item.key(), item.value(), true});
  for (const auto& item : module.named_buffers()) tensors.push_back({item.key(), item.value(), false});
  std::shared_ptr<LeafModule> leaf = make_leaf(type->qualified_name, tensors, std::move(*body));
  leaf->train(module.is_training());
  return leaf;
}

}  // namespace fx
