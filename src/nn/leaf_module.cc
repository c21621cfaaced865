#include <fxgraph/nn/leaf_module.h>

#include <torch/csrc/jit/api/module.h>

#include <utility>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/support/error.h>

namespace fx {

std::string qualify_module_type(const std::string& name) {
  const ModuleType* type = name.find('.') == std::string::npos ? find_module_type(name) : nullptr;
  return type ? type->qualified_name : name;
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
