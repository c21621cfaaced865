#include <fxgraph/nn/leaf_module.h>

#include <torch/csrc/jit/api/module.h>

#include <array>
#include <string_view>
#include <utility>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

// Where torch.nn keeps its classes.
struct TorchNnFile {
  const char* file;
  std::vector<std::string_view> classes;
};
const std::vector<TorchNnFile>& torch_nn_files() {
  static const auto& table = *new std::vector<TorchNnFile>{
      {"conv", {"Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"}},
      {"linear", {"Linear", "Bilinear", "Identity"}},
      {"batchnorm", {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"}},
      {"instancenorm", {"InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"}},
      {"normalization", {"LayerNorm", "GroupNorm", "LocalResponseNorm", "CrossMapLRN2d"}},
      {"activation",
       {"ReLU",
        "ReLU6",
        "Sigmoid",
        "Tanh",
        "GELU",
        "SiLU",
        "Mish",
        "ELU",
        "SELU",
        "CELU",
        "GLU",
        "LeakyReLU",
        "PReLU",
        "RReLU",
        "Hardtanh",
        "Hardswish",
        "Softplus",
        "Softsign",
        "Softmin",
        "Softmax",
        "Softmax2d",
        "LogSoftmax",
        "Threshold",
        "Hardsigmoid",
        "LogSigmoid",
        "Hardshrink",
        "Softshrink",
        "Tanhshrink",
        "MultiheadAttention"}},
      {"pooling",
       {"MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
        "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "LPPool1d", "LPPool2d", "FractionalMaxPool2d",
        "FractionalMaxPool3d"}},
      {"dropout", {"Dropout", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"}},
      {"sparse", {"Embedding", "EmbeddingBag"}},
      {"rnn", {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"}},
      {"padding",
       {"ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
        "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad2d"}},
      {"pixelshuffle", {"PixelShuffle", "PixelUnshuffle"}},
      {"upsampling", {"Upsample"}},
      {"flatten", {"Flatten", "Unflatten"}},
      {"fold", {"Fold", "Unfold"}},
      {"distance", {"CosineSimilarity", "PairwiseDistance"}},
      {"transformer",
       {"Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer",
        "TransformerDecoderLayer"}},
  };
  return table;
}

}  // namespace

std::string qualify_module_type(const std::string& name) {
  if (name.find('.') != std::string::npos) return name;
  for (const TorchNnFile& file : torch_nn_files()) {
    for (const std::string_view known : file.classes) {
      if (name == known) return std::string("torch.nn.modules.") + file.file + "." + name;
    }
  }
  return name;
}

std::shared_ptr<torch::nn::Module> Holder::clone(const TorchDeviceOption& device) const {
  auto copy = std::make_shared<Holder>();
  deep_copy_contents(*this, *copy, device ? &*device : nullptr);
  return copy;
}

LeafModule::LeafModule(const std::string& qualified_name, const std::vector<NamedTensor>& tensors)
    : type_name_(split_path(qualified_name).second), qualified_name_(qualify_module_type(qualified_name)) {
  for (const NamedTensor& named : tensors) {
    const auto [parent, name] = split_path(named.path);
    put_tensor(make_holders(*this, parent), name, named.tensor, named.is_parameter);
  }
}

LeafModule::~LeafModule() = default;

void LeafModule::set_body(std::shared_ptr<const Graph> body) {
  bodies_[0] = body;
  bodies_[1] = std::move(body);
}

void LeafModule::set_body(std::shared_ptr<const Graph> body, bool training) { bodies_[training] = std::move(body); }

void LeafModule::set_script(const torch::jit::Module& module, std::string method) {
  script_ = std::make_unique<torch::jit::Module>(module);
  script_method_ = std::move(method);
}

torch::Tensor LeafModule::find_tensor(const std::string& path) const { return fx::find_tensor(*this, path); }

std::vector<NamedTensor> LeafModule::tensors() const {
  std::vector<NamedTensor> all;
  for (const auto& item : named_parameters()) all.push_back({item.key(), item.value(), true});
  for (const auto& item : named_buffers()) all.push_back({item.key(), item.value(), false});
  return all;
}

void LeafModule::train(bool on) {
  if (script_ && on != is_training()) script_->train(on);  // modes that differ inside stay when nothing changes
  Module::train(on);
}

std::shared_ptr<torch::nn::Module> LeafModule::clone(const TorchDeviceOption& device) const {
  auto copy = std::make_shared<LeafModule>(qualified_name_, std::vector<NamedTensor>());
  if (script_) {
    // The copy's tensors must be those of the copied script.
    copy->set_script(script_->deepcopy(), script_method_);
    if (device) copy->script_->to(*device);
    for (const auto& item : copy->script_->named_attributes()) {
      if (!item.value.isTensor()) continue;
      bool is_parameter = false;
      if (!fx::find_tensor(*this, item.name, &is_parameter).defined()) continue;
      const auto [parent, name] = split_path(item.name);
      put_tensor(make_holders(*copy, parent), name, item.value.toTensor(), is_parameter);
    }
    for (const auto& item : named_modules({}, /*include_self=*/false)) {
      const auto object = std::dynamic_pointer_cast<ObjectAttribute>(item.value());
      if (!object) continue;
      const auto [parent, name] = split_path(item.key());
      make_holders(*copy, parent).register_module(name, object->clone());
    }
    set_own_mode(*copy, is_training());
  } else {
    deep_copy_contents(*this, *copy, device ? &*device : nullptr);
  }
  copy->bodies_[0] = bodies_[0];  // immutable: shared
  copy->bodies_[1] = bodies_[1];
  return copy;
}

void LeafModule::pretty_print(std::ostream& stream) const { stream << qualified_name_; }

std::shared_ptr<LeafModule> make_leaf(const std::string& qualified_name, const std::vector<NamedTensor>& tensors,
                                      Graph body) {
  auto leaf = std::make_shared<LeafModule>(qualified_name, tensors);
  for (const Node& node : body.nodes()) {
    if (node.is(Op::get_attr) && !leaf->find_tensor(node.target().str()).defined()) {
      throw Error(ErrorKind::not_found,
                  "the body of leaf " + leaf->type_name() + " reads '" + node.target().str() +
                      "', which is not among its tensors",
                  node.name());
    }
  }
  leaf->set_body(std::make_shared<const Graph>(std::move(body)));
  leaf->eval();
  return leaf;
}

}  // namespace fx
