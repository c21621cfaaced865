#include <fxgraph/nn/module_tree.h>

#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_members.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/nn/owning_module.h>
#include <fxgraph/nn/without_repeats.h>
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
  const torch::Tensor own = without_repeats(tensor.detach());
  torch::Tensor copy = device ? own.to(*device, own.scalar_type(), /*non_blocking=*/false, /*copy=*/true) : own.clone();
  if (!copy.sizes().equals(tensor.sizes())) {
    const torch::Tensor expanded = copy.expand(tensor.sizes());  // a view, which detach_ refuses
    copy = torch::empty({0}, copy.options()).set_(copy.storage(), 0, expanded.sizes(), expanded.strides());
  }
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

// ── Copies and their ties
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

// A registered tensor and its copy. Both are held: what ties replace must not make room for others at its address.
struct CopiedTensor {
  torch::Tensor original;
  torch::Tensor copy;
  Module* owner = nullptr;  // of the copy
  std::string path, name;
  bool is_parameter = false;
  std::optional<torch::jit::Module> script;  // that has the copy too, in a leaf that is TorchScript's
};
using ByStorage = std::vector<std::pair<const c10::StorageImpl*, std::vector<CopiedTensor>>>;

// One of fxgraph's types, whose clones are made here.
bool is_own(const Module& module) {
  return dynamic_cast<const Holder*>(&module) || dynamic_cast<const LeafModule*>(&module) ||
         dynamic_cast<const OwningModule*>(&module);
}

// Whether what is registered in this module is read from there alone, and so may be another tensor or module.
bool may_be_replaced(const Module& module) {
  if (const auto* leaf = dynamic_cast<const LeafModule*>(&module)) return leaf->script() == nullptr;
  return is_own(module);
}

// The member of the copy's module that is the tensor; null when nobody knows one.
torch::Tensor* member_of(const CopiedTensor& each) {
  const ModuleType* type = find_module_type(*each.owner);
  if (!type || !type->tensors) return nullptr;
  for (torch::Tensor* member : type->tensors(*each.owner)) {
    if (member->is_same(each.copy)) return member;
  }
  return nullptr;
}

// Puts another tensor into the place of the copy, wherever the module reads it; false when it has one of its own.
bool replace(CopiedTensor& each, const torch::Tensor& tensor) {
  if (each.script) {
    each.script->setattr(each.name, tensor);
  } else if (!may_be_replaced(*each.owner)) {
    torch::Tensor* member = member_of(each);
    if (!member) return false;
    *member = tensor;
  }
  put_tensor(*each.owner, each.name, tensor, each.is_parameter);
  return true;
}

// LibTorch's Embedding of given weights has them in its clone too, and moves the original's to other memory on the way.
std::shared_ptr<Module> clone_of(const Module& module, const c10::Device* device) {
  const TorchDeviceOption where = device ? TorchDeviceOption(*device) : TorchDeviceOption();
  if (is_own(module)) return module.clone(where);
  std::vector<std::pair<std::string, torch::Tensor>> contents;
  for (const auto& item : module.named_parameters()) {
    if (item.value().defined()) contents.emplace_back(item.key(), item.value().detach());
  }
  std::shared_ptr<Module> copy = module.clone(where);
  for (const auto& [path, before] : contents) {
    const auto [parent, name] = split_path(path);
    torch::Tensor original = find_tensor(module, path), copied = find_tensor(*copy, path);
    if (!copied.is_same(original)) continue;
    original.set_data(before);
    CopiedTensor shared{original, copied, const_cast<Module*>(find_module(*copy, parent)), path, name, true, {}};
    replace(shared, copy_of(original, device));
  }
  return copy;
}

}  // namespace

void deep_copy_contents(const Module& from, Module& to, const c10::Device* device) {
  for (const auto& item : parameters_of(from)) put_tensor(to, item.key(), copy_of(item.value(), device), true);
  for (const auto& item : buffers_of(from)) put_tensor(to, item.key(), copy_of(item.value(), device), false);
  for (const auto& item : children_of(from)) {
    to.register_module(item.key(), clone_of(*item.value(), device));
  }
  set_own_mode(to, from.is_training());
}

namespace {

// The part at `path` of the script of a leaf; nothing where the script has none.
std::optional<torch::jit::Module> script_at(const torch::jit::Module& script, std::string_view path) {
  torch::jit::Module at = script;
  while (!path.empty()) {
    const std::string name(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (!at.hasattr(name) || !at.attr(name).isModule()) return std::nullopt;
    at = at.attr(name).toModule();
  }
  return at;
}

// The scripts of the leaves on the way: their tensors, and those of the Holders below, are the script's.
class Scripts {
 public:
  std::optional<torch::jit::Module> of(const Module& module, const std::string& path) {
    const auto* leaf = dynamic_cast<const LeafModule*>(&module);
    if (leaf && leaf->script()) scripts_.emplace(path, *leaf->script());
    for (std::size_t end = path.size(); !scripts_.empty();) {
      if (const auto known = scripts_.find(path.substr(0, end)); known != scripts_.end())
        return script_at(known->second, std::string_view(path).substr(std::min(path.size(), end + 1)));
      if (end == 0) break;
      const std::size_t dot = path.rfind('.', end - 1);
      end = dot == std::string::npos ? 0 : dot;
    }
    return std::nullopt;
  }

 private:
  std::unordered_map<std::string, torch::jit::Module> scripts_;  // look-up only
};

}  // namespace

bool replace_tensor(Module& root, const std::string& path, const torch::Tensor& tensor, bool is_parameter) {
  const auto [parent, name] = split_path(path);
  Module& owner = const_cast<Module&>(*find_module(root, parent));
  const torch::Tensor present = find_tensor(root, path);
  Scripts scripts;
  std::optional<torch::jit::Module> script = scripts.of(root, "");
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    script = scripts.of(*find_module(root, path.substr(0, dot)), path.substr(0, dot));
  if (script && !script->hasattr(name)) script.reset();
  CopiedTensor each{present, present, &owner, path, name, is_parameter, script};
  return replace(each, tensor);
}

namespace {

[[noreturn]] void refuse_split(const CopiedTensor& first, const CopiedTensor& second) {
  throw Error(ErrorKind::unsupported,
              "cannot clone: " + first.path + " and " + second.path +
                  " are one parameter, and the copies of their modules, of types that fxgraph does not know, have each "
                  "their own, so that gradients would be split; let one of the modules take it as an input");
}

// The registered tensors by their storages. On the way each copy gets its original's requires_grad: LibTorch's own
// modules make their copies' tensors anew.
ByStorage copied_tensors(const Module& from, Module& to) {
  ByStorage groups;
  Scripts scripts;
  std::unordered_map<const c10::StorageImpl*, std::size_t> group_of;  // look-up only
  const auto add = [&](const Module& original, Module& copy, const std::string& path,
                       const std::optional<torch::jit::Module>& script, bool is_parameter) {
    for (const auto& item : is_parameter ? parameters_of(original) : buffers_of(original)) {
      const torch::Tensor& tensor = item.value();
      torch::Tensor* copied = (is_parameter ? parameters_of(copy) : buffers_of(copy)).find(item.key());
      if (!copied || !copied->defined() || !tensor.defined()) continue;
      CopiedTensor each{tensor, *copied, &copy, join_path(path, item.key()), item.key(), is_parameter, script};
      if (copied->requires_grad() != tensor.requires_grad()) copied->set_requires_grad(tensor.requires_grad());
      if (tensor.layout() != at::kStrided || !tensor.has_storage()) continue;
      const auto [at, is_new] = group_of.emplace(tensor.storage().unsafeGetStorageImpl(), groups.size());
      if (is_new) groups.push_back({at->first, {}});
      groups[at->second].second.push_back(std::move(each));
    }
  };
  std::unordered_set<const Module*> seen;  // look-up only
  const auto visit = [&](const Module& original, Module& copy, const std::string& path) {
    if (!seen.insert(&copy).second) return;
    const std::optional<torch::jit::Module> script = scripts.of(copy, path);
    add(original, copy, path, script, true);
    add(original, copy, path, script, false);
  };
  visit(from, to, "");
  for (const auto& item : from.named_modules("", /*include_self=*/false)) {
    if (const auto copy = find_child(to, item.key())) visit(*item.value(), *copy, item.key());
  }
  return groups;
}

// The whole storage of `original` on the device of `copy`, as bytes.
torch::Tensor copy_of_storage(const torch::Tensor& original, const torch::Tensor& copy) {
  torch::Tensor whole = torch::empty({0}, torch::TensorOptions(torch::kByte).device(original.device()));
  whole.set_(original.storage(), 0, {static_cast<std::int64_t>(original.storage().nbytes())}, {1});
  return whole.to(copy.device(), torch::kByte, /*non_blocking=*/false, /*copy=*/true);
}

// Whether a clone lies in memory as this does: else a write, or as_strided, shows that it is another.
bool is_whole(const torch::Tensor& tensor) {
  return !tensor.is_conj() && !tensor.is_neg() && tensor.is_non_overlapping_and_dense() &&
         tensor.storage().nbytes() == static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
}

void tie(std::vector<CopiedTensor>& group) {
  const torch::Tensor storage = copy_of_storage(group.front().original, group.front().copy);
  std::unordered_map<const c10::TensorImpl*, CopiedTensor> tied;  // look-up only
  // A module that keeps its tensor to itself decides which one the others get.
  const auto keeps_its_own = [](const CopiedTensor& each) {
    return !each.script && !may_be_replaced(*each.owner) && !member_of(each);
  };
  std::ranges::stable_partition(group, keeps_its_own);
  for (CopiedTensor& each : group) {
    const torch::Tensor& original = each.original;
    const auto [known, is_new] = tied.try_emplace(original.unsafeGetTensorImpl(), each);
    if (is_new) {
      torch::Tensor view = torch::empty({0}, original.options().device(storage.device()).requires_grad(false));
      view.set_(storage.storage(), original.storage_offset(), original.sizes(), original.strides());
      if (original.is_conj()) view = at::_conj(view);
      if (original.is_neg()) view = at::_neg_view(view);
      each.copy.set_data(view);
      each.copy.set_requires_grad(original.requires_grad());
    } else if (!replace(each, known->second.copy)) {
      each.copy.set_data(known->second.copy);
      if (original.requires_grad()) refuse_split(known->second, each);
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
    const torch::Tensor& first = group.front().original;
    if (group.size() > 1 || (!first.is_quantized() && !is_whole(first))) tie(group);
  }
}

}  // namespace fx
