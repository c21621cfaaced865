// A row per type: the arguments of its options' constructor, then the options that have setters.
#include <fxgraph/nn/nn_construction.h>

#include <torch/nn/functional/instancenorm.h>  // which modules.h uses without including it
#include <torch/nn/modules.h>

#include <functional>
#include <tuple>
#include <typeindex>
#include <unordered_map>

#include <fxgraph/nn/spelled_options.h>

namespace fx {

std::string internal::made_of(const char* type, std::initializer_list<std::string> required,
                              std::initializer_list<SetOption> options) {
  bool known = true;
  std::string arguments, set;
  for (const std::string& text : required) {
    known = known && !text.empty();
    arguments += (arguments.empty() ? "" : ", ") + text;
  }
  for (const auto& [name, text, plain] : options) {
    known = known && !text.empty();
    if (text != plain) set += std::string(".") + name + "(" + text + ")";
  }
  const std::string name = std::string("torch::nn::") + type;
  return known ? name + "(" + name + "Options(" + arguments + ")" + set + ")" : std::string();
}

namespace {

namespace nn = torch::nn;
using internal::made_of;
using internal::Setter;

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

template <typename T>
CodeModule::Result result_of(const T*) {
  return {};
}
template <typename... Parts>
CodeModule::Result result_of(const std::tuple<Parts...>*) {
  return {{result_of(static_cast<const Parts*>(nullptr))...}};
}
template <typename Class, typename Result, typename... Parameters>
CodeModule::Result result_of_forward(Result (Class::*)(Parameters...)) {
  return result_of(static_cast<const Result*>(nullptr));
}

struct Row {
  std::string type;
  CodeModule::Result result;
  std::function<std::string(const nn::Module&)> construction;
};
using Constructions = std::unordered_map<std::type_index, Row>;

template <typename Impl, typename Describe>
void add(Constructions& table, const char* type, Describe describe) {
  table.emplace(typeid(Impl), Row{std::string("torch::nn::") + type, result_of_forward(&Impl::forward),
                                  [=](const nn::Module& module) {
                                    const auto& impl = dynamic_cast<const Impl&>(module);
                                    return describe(type, impl);
                                  }});
}

template <typename Impl>
void add_plain(Constructions& table, const char* type) {
  add<Impl>(table, type, [](const char* name, const Impl&) { return "torch::nn::" + std::string(name) + "()"; });
}

// `required` takes the options to the arguments of their constructor.
template <typename Impl, typename Required, typename... Gets>
void add_with(Constructions& table, const char* type, Required required, Setter<Gets>... setters) {
  add<Impl>(table, type, [=](const char* name, const Impl& module) {
    return made_of(name, module.options, required(module.options), setters...);
  });
}

constexpr auto kNothing = [](const auto&) { return std::tuple<>(); };

template <typename Impl>
void add_convolution(Constructions& table, const char* type) {
  add_with<Impl>(
      table, type, [](const auto& o) { return std::make_tuple(o.in_channels(), o.out_channels(), o.kernel_size()); },
      FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(dilation), FX_OPTION(groups), FX_OPTION(bias),
      FX_OPTION(padding_mode));
}
template <typename Impl>
void add_transposed_convolution(Constructions& table, const char* type) {
  add_with<Impl>(
      table, type, [](const auto& o) { return std::make_tuple(o.in_channels(), o.out_channels(), o.kernel_size()); },
      FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(output_padding), FX_OPTION(groups), FX_OPTION(bias),
      FX_OPTION(dilation), FX_OPTION(padding_mode));
}
template <typename Impl>
void add_norm(Constructions& table, const char* type) {
  add_with<Impl>(
      table, type, [](const auto& o) { return std::make_tuple(o.num_features()); }, FX_OPTION(eps), FX_OPTION(momentum),
      FX_OPTION(affine), FX_OPTION(track_running_stats));
}
template <typename Impl>
void add_max_pool(Constructions& table, const char* type) {
  add_with<Impl>(
      table, type, [](const auto& o) { return std::make_tuple(o.kernel_size()); }, FX_OPTION(stride),
      FX_OPTION(padding), FX_OPTION(dilation), FX_OPTION(ceil_mode));
}
template <typename Impl>
void add_adaptive_pool(Constructions& table, const char* type) {
  add_with<Impl>(table, type, [](const auto& o) { return std::make_tuple(o.output_size()); });
}
template <typename Impl>
void add_dropout(Constructions& table, const char* type) {
  add_with<Impl>(table, type, kNothing, FX_OPTION(p), FX_OPTION(inplace));
}
template <typename Impl>
void add_padding(Constructions& table, const char* type) {
  add_with<Impl>(table, type, [](const auto& o) { return std::make_tuple(o.padding()); });
}
template <typename Impl>
void add_constant_padding(Constructions& table, const char* type) {
  add_with<Impl>(table, type, [](const auto& o) { return std::make_tuple(o.padding(), o.value()); });
}
template <typename Impl>
void add_of_dim(Constructions& table, const char* type) {
  add_with<Impl>(table, type, [](const auto& o) { return std::make_tuple(o.dim()); });
}
template <typename Impl, typename... Gets>
void add_recurrent(Constructions& table, const char* type, Setter<Gets>... setters) {
  add_with<Impl>(
      table, type, [](const auto& o) { return std::make_tuple(o.input_size(), o.hidden_size()); }, FX_OPTION(bias),
      setters...);
}

void add_convolutions_and_norms(Constructions& table) {
  add_convolution<nn::Conv1dImpl>(table, "Conv1d");
  add_convolution<nn::Conv2dImpl>(table, "Conv2d");
  add_convolution<nn::Conv3dImpl>(table, "Conv3d");
  add_transposed_convolution<nn::ConvTranspose1dImpl>(table, "ConvTranspose1d");
  add_transposed_convolution<nn::ConvTranspose2dImpl>(table, "ConvTranspose2d");
  add_transposed_convolution<nn::ConvTranspose3dImpl>(table, "ConvTranspose3d");
  add_norm<nn::BatchNorm1dImpl>(table, "BatchNorm1d");
  add_norm<nn::BatchNorm2dImpl>(table, "BatchNorm2d");
  add_norm<nn::BatchNorm3dImpl>(table, "BatchNorm3d");
  add_norm<nn::InstanceNorm1dImpl>(table, "InstanceNorm1d");
  add_norm<nn::InstanceNorm2dImpl>(table, "InstanceNorm2d");
  add_norm<nn::InstanceNorm3dImpl>(table, "InstanceNorm3d");
  add_with<nn::LayerNormImpl>(
      table, "LayerNorm", [](const auto& o) { return std::make_tuple(o.normalized_shape()); }, FX_OPTION(eps),
      FX_OPTION(elementwise_affine));
  add_with<nn::GroupNormImpl>(
      table, "GroupNorm", [](const auto& o) { return std::make_tuple(o.num_groups(), o.num_channels()); },
      FX_OPTION(eps), FX_OPTION(affine));
  add_with<nn::LocalResponseNormImpl>(
      table, "LocalResponseNorm", [](const auto& o) { return std::make_tuple(o.size()); }, FX_OPTION(alpha),
      FX_OPTION(beta), FX_OPTION(k));
}

void add_linear_and_embedding(Constructions& table) {
  add_with<nn::LinearImpl>(
      table, "Linear", [](const auto& o) { return std::make_tuple(o.in_features(), o.out_features()); },
      FX_OPTION(bias));
  add_with<nn::BilinearImpl>(
      table, "Bilinear",
      [](const auto& o) { return std::make_tuple(o.in1_features(), o.in2_features(), o.out_features()); },
      FX_OPTION(bias));
  add_plain<nn::IdentityImpl>(table, "Identity");
  add_with<nn::FlattenImpl>(table, "Flatten", kNothing, FX_OPTION(start_dim), FX_OPTION(end_dim));
  const auto size = [](const auto& o) { return std::make_tuple(o.num_embeddings(), o.embedding_dim()); };
  add_with<nn::EmbeddingImpl>(table, "Embedding", size, FX_OPTION(padding_idx), FX_OPTION(max_norm),
                              FX_OPTION(norm_type), FX_OPTION(scale_grad_by_freq), FX_OPTION(sparse));
  add_with<nn::EmbeddingBagImpl>(table, "EmbeddingBag", size, FX_OPTION(max_norm), FX_OPTION(norm_type),
                                 FX_OPTION(scale_grad_by_freq), FX_OPTION(mode), FX_OPTION(sparse),
                                 FX_OPTION(include_last_offset), FX_OPTION(padding_idx));
  add_with<nn::CosineSimilarityImpl>(table, "CosineSimilarity", kNothing, FX_OPTION(dim), FX_OPTION(eps));
  add_with<nn::PairwiseDistanceImpl>(table, "PairwiseDistance", kNothing, FX_OPTION(p), FX_OPTION(eps),
                                     FX_OPTION(keepdim));
}

void add_activations(Constructions& table) {
  add_with<nn::ReLUImpl>(table, "ReLU", kNothing, FX_OPTION(inplace));
  add_with<nn::ReLU6Impl>(table, "ReLU6", kNothing, FX_OPTION(inplace));
  add_with<nn::SELUImpl>(table, "SELU", kNothing, FX_OPTION(inplace));
  add_with<nn::ELUImpl>(table, "ELU", kNothing, FX_OPTION(alpha), FX_OPTION(inplace));
  add_with<nn::CELUImpl>(table, "CELU", kNothing, FX_OPTION(alpha), FX_OPTION(inplace));
  add_with<nn::GELUImpl>(table, "GELU", kNothing, FX_OPTION(approximate));
  add_with<nn::LeakyReLUImpl>(table, "LeakyReLU", kNothing, FX_OPTION(negative_slope), FX_OPTION(inplace));
  add_with<nn::PReLUImpl>(table, "PReLU", kNothing, FX_OPTION(num_parameters), FX_OPTION(init));
  add_with<nn::RReLUImpl>(table, "RReLU", kNothing, FX_OPTION(lower), FX_OPTION(upper), FX_OPTION(inplace));
  add_with<nn::HardtanhImpl>(table, "Hardtanh", kNothing, FX_OPTION(min_val), FX_OPTION(max_val), FX_OPTION(inplace));
  add_with<nn::SoftplusImpl>(table, "Softplus", kNothing, FX_OPTION(beta), FX_OPTION(threshold));
  add_with<nn::HardshrinkImpl>(table, "Hardshrink", kNothing, FX_OPTION(lambda));
  add_with<nn::SoftshrinkImpl>(table, "Softshrink", kNothing, FX_OPTION(lambda));
  add_with<nn::ThresholdImpl>(
      table, "Threshold", [](const auto& o) { return std::make_tuple(o.threshold(), o.value()); }, FX_OPTION(inplace));
  add_of_dim<nn::GLUImpl>(table, "GLU");
  add_of_dim<nn::SoftmaxImpl>(table, "Softmax");
  add_of_dim<nn::SoftminImpl>(table, "Softmin");
  add_of_dim<nn::LogSoftmaxImpl>(table, "LogSoftmax");
  add_plain<nn::SigmoidImpl>(table, "Sigmoid");
  add_plain<nn::TanhImpl>(table, "Tanh");
  add_plain<nn::SiLUImpl>(table, "SiLU");
  add_plain<nn::MishImpl>(table, "Mish");
  add_plain<nn::SoftsignImpl>(table, "Softsign");
  add_plain<nn::Softmax2dImpl>(table, "Softmax2d");
  add_plain<nn::LogSigmoidImpl>(table, "LogSigmoid");
  add_plain<nn::TanhshrinkImpl>(table, "Tanhshrink");
}

void add_pools(Constructions& table) {
  add_max_pool<nn::MaxPool1dImpl>(table, "MaxPool1d");
  add_max_pool<nn::MaxPool2dImpl>(table, "MaxPool2d");
  add_max_pool<nn::MaxPool3dImpl>(table, "MaxPool3d");
  const auto window = [](const auto& o) { return std::make_tuple(o.kernel_size()); };
  add_with<nn::AvgPool1dImpl>(table, "AvgPool1d", window, FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(ceil_mode),
                              FX_OPTION(count_include_pad));
  add_with<nn::AvgPool2dImpl>(table, "AvgPool2d", window, FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(ceil_mode),
                              FX_OPTION(count_include_pad), FX_OPTION(divisor_override));
  add_with<nn::AvgPool3dImpl>(table, "AvgPool3d", window, FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(ceil_mode),
                              FX_OPTION(count_include_pad), FX_OPTION(divisor_override));
  add_adaptive_pool<nn::AdaptiveAvgPool1dImpl>(table, "AdaptiveAvgPool1d");
  add_adaptive_pool<nn::AdaptiveAvgPool2dImpl>(table, "AdaptiveAvgPool2d");
  add_adaptive_pool<nn::AdaptiveAvgPool3dImpl>(table, "AdaptiveAvgPool3d");
  add_adaptive_pool<nn::AdaptiveMaxPool1dImpl>(table, "AdaptiveMaxPool1d");
  add_adaptive_pool<nn::AdaptiveMaxPool2dImpl>(table, "AdaptiveMaxPool2d");
  add_adaptive_pool<nn::AdaptiveMaxPool3dImpl>(table, "AdaptiveMaxPool3d");
  const auto norm = [](const auto& o) { return std::make_tuple(o.norm_type(), o.kernel_size()); };
  add_with<nn::LPPool1dImpl>(table, "LPPool1d", norm, FX_OPTION(stride), FX_OPTION(ceil_mode));
  add_with<nn::LPPool2dImpl>(table, "LPPool2d", norm, FX_OPTION(stride), FX_OPTION(ceil_mode));
}

void add_paddings_and_shapes(Constructions& table) {
  add_padding<nn::ReflectionPad1dImpl>(table, "ReflectionPad1d");
  add_padding<nn::ReflectionPad2dImpl>(table, "ReflectionPad2d");
  add_padding<nn::ReplicationPad1dImpl>(table, "ReplicationPad1d");
  add_padding<nn::ReplicationPad2dImpl>(table, "ReplicationPad2d");
  add_padding<nn::ReplicationPad3dImpl>(table, "ReplicationPad3d");
  add_padding<nn::ZeroPad2dImpl>(table, "ZeroPad2d");
  add_constant_padding<nn::ConstantPad1dImpl>(table, "ConstantPad1d");
  add_constant_padding<nn::ConstantPad2dImpl>(table, "ConstantPad2d");
  add_constant_padding<nn::ConstantPad3dImpl>(table, "ConstantPad3d");
  add_with<nn::UpsampleImpl>(table, "Upsample", kNothing, FX_OPTION(size), FX_OPTION(scale_factor), FX_OPTION(mode),
                             FX_OPTION(align_corners));
  add_with<nn::PixelShuffleImpl>(table, "PixelShuffle",
                                 [](const auto& o) { return std::make_tuple(o.upscale_factor()); });
  add_with<nn::PixelUnshuffleImpl>(table, "PixelUnshuffle",
                                   [](const auto& o) { return std::make_tuple(o.downscale_factor()); });
  add_with<nn::FoldImpl>(
      table, "Fold", [](const auto& o) { return std::make_tuple(o.output_size(), o.kernel_size()); },
      FX_OPTION(dilation), FX_OPTION(padding), FX_OPTION(stride));
  add_with<nn::UnfoldImpl>(
      table, "Unfold", [](const auto& o) { return std::make_tuple(o.kernel_size()); }, FX_OPTION(dilation),
      FX_OPTION(padding), FX_OPTION(stride));
  add_dropout<nn::DropoutImpl>(table, "Dropout");
  add_dropout<nn::Dropout2dImpl>(table, "Dropout2d");
  add_dropout<nn::Dropout3dImpl>(table, "Dropout3d");
  add_dropout<nn::AlphaDropoutImpl>(table, "AlphaDropout");
  add_dropout<nn::FeatureAlphaDropoutImpl>(table, "FeatureAlphaDropout");
}

void add_sequence_models(Constructions& table) {
  add_recurrent<nn::LSTMImpl>(table, "LSTM", FX_OPTION(num_layers), FX_OPTION(batch_first), FX_OPTION(dropout),
                              FX_OPTION(bidirectional), FX_OPTION(proj_size));
  add_recurrent<nn::GRUImpl>(table, "GRU", FX_OPTION(num_layers), FX_OPTION(batch_first), FX_OPTION(dropout),
                             FX_OPTION(bidirectional));
  add_recurrent<nn::RNNImpl>(table, "RNN", FX_OPTION(num_layers), FX_OPTION(nonlinearity), FX_OPTION(batch_first),
                             FX_OPTION(dropout), FX_OPTION(bidirectional));
  add_recurrent<nn::LSTMCellImpl>(table, "LSTMCell");
  add_recurrent<nn::GRUCellImpl>(table, "GRUCell");
  add_recurrent<nn::RNNCellImpl>(table, "RNNCell", FX_OPTION(nonlinearity));
  add_with<nn::MultiheadAttentionImpl>(
      table, "MultiheadAttention", [](const auto& o) { return std::make_tuple(o.embed_dim(), o.num_heads()); },
      FX_OPTION(dropout), FX_OPTION(bias), FX_OPTION(add_bias_kv), FX_OPTION(add_zero_attn), FX_OPTION(kdim),
      FX_OPTION(vdim));
  const auto width = [](const auto& o) { return std::make_tuple(o.d_model(), o.nhead()); };
  add_with<nn::TransformerEncoderLayerImpl>(table, "TransformerEncoderLayer", width, FX_OPTION(dim_feedforward),
                                            FX_OPTION(dropout), FX_OPTION(activation));
  add_with<nn::TransformerDecoderLayerImpl>(table, "TransformerDecoderLayer", width, FX_OPTION(dim_feedforward),
                                            FX_OPTION(dropout), FX_OPTION(activation));
  add<nn::TransformerImpl>(table, "Transformer", [=](const char* type, const nn::TransformerImpl& module) {
    const auto& options = module.options;
    if (!options.custom_encoder().is_empty() || !options.custom_decoder().is_empty()) return std::string();
    return made_of(type, options, width(options), FX_OPTION(num_encoder_layers), FX_OPTION(num_decoder_layers),
                   FX_OPTION(dim_feedforward), FX_OPTION(dropout), FX_OPTION(activation));
  });
}
#undef FX_OPTION

// A stack of equal layers, with a norm that is a module of torch::nn or none.
std::string made_of_layers(const char* type, const nn::Module& layer, std::int64_t count, const nn::AnyModule& norm) {
  const std::string name = std::string("torch::nn::") + type;
  const std::optional<CodeModule> inner = construction_of(layer);
  if (!inner) return {};
  std::string options = name + "Options(" + inner->construction + ", " + std::to_string(count) + ")";
  if (!norm.is_empty()) {
    const std::optional<CodeModule> last = construction_of(*norm.ptr());
    if (!last) return {};
    options += ".norm(torch::nn::AnyModule(" + last->construction + "))";
  }
  return name + "(" + options + ")";
}

void add_stacks(Constructions& table) {
  add<nn::TransformerEncoderImpl>(table, "TransformerEncoder", [](const char* type, const auto& module) {
    const auto& o = module.options;
    return made_of_layers(type, *o.encoder_layer(), o.num_layers(), o.norm());
  });
  add<nn::TransformerDecoderImpl>(table, "TransformerDecoder", [](const char* type, const auto& module) {
    const auto& o = module.options;
    return made_of_layers(type, *o.decoder_layer(), o.num_layers(), o.norm());
  });
}

const Constructions& table() {
  static const Constructions& all = []() -> Constructions& {
    Constructions& made = *new Constructions;
    add_convolutions_and_norms(made);
    add_linear_and_embedding(made);
    add_activations(made);
    add_pools(made);
    add_paddings_and_shapes(made);
    add_sequence_models(made);
    add_stacks(made);
    return made;
  }();
  return all;
}

}  // namespace

std::optional<CodeModule> construction_of(const torch::nn::Module& module) {
  const auto row = table().find(typeid(module));
  if (row == table().end()) return std::nullopt;
  CodeModule result;
  result.type = row->second.type;
  result.construction = row->second.construction(module);
  result.result = row->second.result;
  result.training = module.is_training();
  if (result.construction.empty()) return std::nullopt;
  return result;
}

}  // namespace fx
