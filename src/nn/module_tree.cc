#include <fxgraph/nn/module_tree.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_members.h>
#include <fxgraph/nn/owning_module.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using torch::nn::Module;
using Tensors = internal::TensorDict;

using internal::buffers_of;
using internal::children_of;
using internal::parameters_of;

bool erase_from(Tensors& tensors, const std::string& name) {
  if (!tensors.contains(name)) return false;
  tensors.erase(name);
  return true;
}

/// What is expanded stays so: a write reaches all elements that share memory in the copy too.
torch::Tensor copy_of(const torch::Tensor& tensor, const c10::Device* device) {
  torch::NoGradGuard guard;
  torch::Tensor own = tensor.detach();
  if (own.layout() == torch::kStrided) {
    for (std::int64_t dim = 0; dim < own.dim(); ++dim) {
      if (own.stride(dim) == 0 && own.size(dim) > 1) own = own.narrow(dim, 0, 1);
    }
  }
  torch::Tensor copy = device ? own.to(*device, own.scalar_type(), /*non_blocking=*/false, /*copy=*/true) : own.clone();
  if (!copy.sizes().equals(tensor.sizes())) copy = copy.expand(tensor.sizes());
  return copy.set_requires_grad(tensor.requires_grad());
}

}  // namespace

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

std::string join_path(std::string_view parent, std::string_view name) {
  std::string path(parent);
  if (!path.empty()) path += '.';
  return path.append(name);
}

std::shared_ptr<Module> find_child(const Module& root, const std::string& path) {
  const Module* at = &root;
  std::shared_ptr<Module> found;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const std::shared_ptr<Module>* child = children_of(*at).find(path.substr(from, dot - from));
    if (!child || !*child) return nullptr;
    found = *child;
    at = found.get();
    from = dot + 1;
  }
  return found;
}

const Module* find_module(const Module& root, const std::string& path) {
  return path.empty() ? &root : find_child(root, path).get();
}

torch::Tensor find_tensor(const Module& root, const std::string& path, bool* is_parameter) {
  const auto [parent, name] = split_path(path);
  const Module* module = find_module(root, parent);
  if (!module) return {};
  const torch::Tensor* parameter = parameters_of(*module).find(name);
  if (is_parameter) *is_parameter = parameter != nullptr;
  if (parameter) return *parameter;
  const torch::Tensor* buffer = buffers_of(*module).find(name);
  return buffer ? *buffer : torch::Tensor();
}

void put_tensor(Module& module, const std::string& name, const torch::Tensor& tensor, bool is_parameter) {
  Tensors& wanted = is_parameter ? parameters_of(module) : buffers_of(module);
  erase_from(is_parameter ? buffers_of(module) : parameters_of(module), name);
  if (torch::Tensor* present = wanted.find(name)) {
    *present = tensor;
  } else {
    wanted.insert(name, tensor);
  }
}

bool remove_tensor(Module& module, const std::string& name) {
  return erase_from(parameters_of(module), name) || erase_from(buffers_of(module), name);
}

Module& make_holders(Module& root, const std::string& path) {
  Module* at = &root;
  for (std::size_t from = 0; !path.empty() && from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const std::string atom = path.substr(from, dot - from);
    if (atom.empty()) throw Error(ErrorKind::invalid_argument, "the path '" + path + "' has an empty part");
    const std::shared_ptr<Module>* child = children_of(*at).find(atom);
    if (child && *child) {
      at = child->get();
    } else if (parameters_of(*at).contains(atom) || buffers_of(*at).contains(atom)) {
      throw Error(ErrorKind::invalid_argument,
                  "'" + path.substr(0, dot) + "' is a tensor, nothing can be put below it");
    } else {
      at = at->register_module(atom, std::make_shared<Holder>()).get();
    }
    from = dot + 1;
  }
  return *at;
}

void set_own_mode(Module& module, bool training) { internal::training_of(module) = training; }

void copy_modes(const Module& from, Module& to) {
  set_own_mode(to, from.is_training());
  for (const auto& item : to.named_modules("", /*include_self=*/false)) {
    if (!dynamic_cast<const Holder*>(item.value().get())) continue;
    if (const Module* original = find_module(from, item.key())) set_own_mode(*item.value(), original->is_training());
  }
}

void deep_copy_contents(const Module& from, Module& to, const c10::Device* device) {
  for (const auto& item : parameters_of(from)) put_tensor(to, item.key(), copy_of(item.value(), device), true);
  for (const auto& item : buffers_of(from)) put_tensor(to, item.key(), copy_of(item.value(), device), false);
  for (const auto& item : children_of(from)) {
    to.register_module(item.key(), item.value()->clone(device ? TorchDeviceOption(*device) : TorchDeviceOption()));
  }
  set_own_mode(to, from.is_training());
}

// ── Ties
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

// A registered tensor and its copy. Both are held: what ties replace must not make room for others at its address.
struct CopiedTensor {
  torch::Tensor original;
  torch::Tensor copy;
  Module* owner = nullptr;  // of the copy
  std::string name;
  bool is_parameter = false;
};
using ByStorage = std::vector<std::pair<const c10::StorageImpl*, std::vector<CopiedTensor>>>;

// Whether a tensor registered in this module is read from there alone, and so may be another one.
bool may_be_replaced(const Module& module) {
  if (const auto* leaf = dynamic_cast<const LeafModule*>(&module)) return leaf->script() == nullptr;
  return dynamic_cast<const Holder*>(&module) || dynamic_cast<const OwningModule*>(&module);
}

ByStorage copied_tensors(const Module& from, Module& to) {
  ByStorage groups;
  std::unordered_map<const c10::StorageImpl*, std::size_t> group_of;  // look-up only
  const auto add = [&](const Module& original, Module& copy, bool is_parameter) {
    for (const auto& item : is_parameter ? parameters_of(original) : buffers_of(original)) {
      const torch::Tensor& tensor = item.value();
      const torch::Tensor* copied = (is_parameter ? parameters_of(copy) : buffers_of(copy)).find(item.key());
      if (!copied || !copied->defined() || !tensor.defined()) continue;
      if (tensor.layout() != at::kStrided || !tensor.has_storage()) continue;
      const auto [at, is_new] = group_of.emplace(tensor.storage().unsafeGetStorageImpl(), groups.size());
      if (is_new) groups.push_back({at->first, {}});
      groups[at->second].second.push_back({tensor, *copied, &copy, item.key(), is_parameter});
    }
  };
  std::unordered_set<const Module*> seen;  // look-up only
  const auto visit = [&](const Module& original, Module& copy) {
    if (!seen.insert(&copy).second) return;
    add(original, copy, true);
    add(original, copy, false);
  };
  visit(from, to);
  for (const auto& item : from.named_modules("", /*include_self=*/false)) {
    if (const auto copy = find_child(to, item.key())) visit(*item.value(), *copy);
  }
  return groups;
}

// The whole storage of `original` on the device of `copy`, as bytes.
torch::Tensor copy_of_storage(const torch::Tensor& original, const torch::Tensor& copy) {
  torch::Tensor whole = torch::empty({0}, torch::TensorOptions(torch::kByte).device(original.device()));
  whole.set_(original.storage(), 0, {static_cast<std::int64_t>(original.storage().nbytes())}, {1});
  return whole.to(copy.device(), torch::kByte, /*non_blocking=*/false, /*copy=*/true);
}

void tie(std::vector<CopiedTensor>& group) {
  const torch::Tensor storage = copy_of_storage(group.front().original, group.front().copy);
  std::unordered_map<const c10::TensorImpl*, torch::Tensor> tied;  // look-up only
  for (CopiedTensor& each : group) {
    const torch::Tensor& original = each.original;
    torch::Tensor& known = tied[original.unsafeGetTensorImpl()];
    if (!known.defined()) {
      known = torch::empty({0}, original.options().device(storage.device()).requires_grad(false));
      known.set_(storage.storage(), original.storage_offset(), original.sizes(), original.strides());
      known.set_requires_grad(original.requires_grad());
    }
    if (may_be_replaced(*each.owner)) {
      put_tensor(*each.owner, each.name, known, each.is_parameter);
    } else {
      each.copy.set_data(known);
    }
  }
}

void tie_modules(const Module& from, Module& to) {
  std::unordered_map<const Module*, std::string> first_path;  // look-up only
  for (const auto& item : from.named_modules("", /*include_self=*/false)) {
    const auto [first, is_new] = first_path.emplace(item.value().get(), item.key());
    if (is_new) continue;
    const auto [parent, name] = split_path(item.key());
    Module* owner = const_cast<Module*>(find_module(to, parent));
    const std::shared_ptr<Module> module = find_child(to, first->second);
    if (owner && module && may_be_replaced(*owner)) owner->replace_module(name, module);
  }
}

}  // namespace

void keep_ties(const Module& from, Module& to) {
  const torch::NoGradGuard guard;
  tie_modules(from, to);
  for (auto& [storage, group] : copied_tensors(from, to)) {
    if (group.size() > 1) tie(group);
  }
}

}  // namespace fx
