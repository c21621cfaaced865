#include <fxgraph/module/graph_module.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/run/held_memory.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using torch::nn::Module;

[[noreturn]] void missing(const Node& node, const std::string& where) {
  throw Error(ErrorKind::not_found,
              where + " has no '" + node.target().str() + "', which %" + node.name() + " " +
                  (node.is(Op::get_attr) ? "reads" : "calls"),
              node.name());
}

bool names_attribute(const Node& node) { return node.is(Op::get_attr) || node.is(Op::call_module); }

// What a get_attr may read beside tensors: nested graphs, which higher-order operators call, and packed objects.
bool is_value(const Module& module) {
  return dynamic_cast<const OwningModule*>(&module) || dynamic_cast<const ObjectAttribute*>(&module);
}

/// True for a type of C++ whose copies have all its tensors, or cannot be made.
bool makes_its_tensors(const Module& module) {
  return !dynamic_cast<const Holder*>(&module) && !dynamic_cast<const LeafModule*>(&module) &&
         !dynamic_cast<const OwningModule*>(&module);
}

/// `path`, beside the first module on the way that is of such a type and may be the caller's: `conv.weight` is
/// `conv_weight`.
std::string beside_modules(const Module& root, std::string path) {
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    const Module* module = find_module(root, path.substr(0, dot));
    if (!module) break;
    if (!makes_its_tensors(*module)) continue;
    std::replace(path.begin() + static_cast<std::ptrdiff_t>(dot), path.end(), '.', '_');
    break;
  }
  return path;
}

void require_no_module(const Module& holder, const std::string& name, const std::string& path) {
  if (!find_child(holder, name)) return;
  throw Error(ErrorKind::invalid_argument, "'" + path + "' is a module; remove it before putting a tensor there");
}

/// A module that runs by its own code reads members, not what is registered.
void put_where_it_is_read(Module& root, Module& holder, const std::string& path, const torch::Tensor& tensor,
                          bool is_parameter) {
  const std::string name = split_path(path).second;
  require_no_module(holder, name, path);
  const bool replaced = find_tensor(holder, name).defined() && !find_tensor(holder, name).is_same(tensor);
  if (replaced && replace_tensor(root, path, tensor, is_parameter)) return;
  const ModuleType* type = replaced ? find_module_type(holder) : nullptr;
  if (type && !type->tensors) {
    throw Error(ErrorKind::unsupported, "cannot put another tensor at '" + path + "': " + type->qualified_name +
                                            " keeps its own, which nobody else can replace; write into it (copy_)");
  }
  if (!find_tensor(holder, name).defined() && makes_its_tensors(holder)) {
    throw Error(ErrorKind::invalid_argument,
                "cannot put a tensor at '" + path + "': '" + split_path(path).first +
                    "' is a module of C++ that others may hold, and its copies have what its "
                    "constructor makes; put it at '" +
                    beside_modules(root, path) + "'");
  }
  put_tensor(holder, name, tensor, is_parameter);
}

/// Refuses what cannot be put at `path`: no module, or one that would then be inside itself.
void require_addable(const Module& root, const std::string& path, const std::shared_ptr<Module>& module) {
  if (!module) {
    throw Error(ErrorKind::invalid_argument,
                "there is no module to put at '" + path + "': the pointer is null; delete_submodule removes one");
  }
  const Module* holder = &root;  // the last module on the way that is there already
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    const std::shared_ptr<Module> next = find_child(root, path.substr(0, dot));
    if (!next) break;
    holder = next.get();
  }
  bool inside = module.get() == holder;
  for (const auto& inner : module->modules(/*include_self=*/false)) inside |= inner.get() == holder;
  if (inside) {
    throw Error(ErrorKind::invalid_argument,
                "the module for '" + path + "' would be inside itself, without end; put a copy there (clone)");
  }
}

}  // namespace

GraphModule::GraphModule(Graph graph, std::string class_name)
    : graph_(std::move(graph)), class_name_(std::move(class_name)) {
  install_schema_source();
}

GraphModule::GraphModule(const Module& root, Graph graph, std::string class_name)
    : GraphModule(std::move(graph), std::move(class_name)) {
  const std::string where = "the module " + root.name();
  // Called modules first: what get_attr reads inside of one is then already there.
  for (const Node& node : graph_.nodes()) {
    if (!node.is(Op::call_module)) continue;
    const std::string path = node.target().str();
    std::shared_ptr<Module> module = find_child(root, path);
    if (!module) missing(node, where);
    if (!find_submodule(path)) add_submodule(path, std::move(module));
  }
  for (const Node& node : graph_.nodes()) {
    if (!node.is(Op::get_attr)) continue;
    const std::string path = node.target().str();
    bool is_parameter = false;
    const torch::Tensor tensor = find_tensor(root, path, &is_parameter);
    const std::shared_ptr<Module> held = tensor.defined() ? nullptr : find_child(root, path);
    if (held && is_value(*held)) {
      if (!find_submodule(path)) add_submodule(path, held);
      continue;
    }
    if (!tensor.defined()) missing(node, where);
    if (find_attribute(path).defined()) continue;
    is_parameter ? set_parameter(path, tensor) : set_buffer(path, tensor);
  }
  copy_modes(root, *this);
  if (const auto* program = dynamic_cast<const GraphModule*>(&root)) take_mode(*program);
}

GraphModule::GraphModule(const Attributes& attributes, Graph graph, std::string class_name)
    : GraphModule(std::move(graph), std::move(class_name)) {
  std::unordered_map<std::string, const Attribute*> by_path;
  for (const auto& [path, attribute] : attributes) by_path.emplace(path, &attribute);
  const auto take = [&](const Node& node, auto&& put) {
    const auto found = by_path.find(node.target().str());
    if (found != by_path.end()) put(found->first, *found->second);
  };
  for (const Node& node : graph_.nodes()) {
    if (!names_attribute(node)) continue;
    take(node, [&](const std::string& path, const Attribute& attribute) {
      if (const auto* module = std::get_if<std::shared_ptr<Module>>(&attribute)) {
        if (find_submodule(path) != *module) add_submodule(path, *module);
      }
    });
  }
  for (const Node& node : graph_.nodes()) {
    if (!names_attribute(node)) continue;
    take(node, [&](const std::string& path, const Attribute& attribute) {
      const auto* tensor = std::get_if<torch::Tensor>(&attribute);
      if (tensor && !find_attribute(path).defined()) set_attribute(path, *tensor);
    });
    const std::string path = node.target().str();
    const bool is_tensor = node.is(Op::get_attr) && find_attribute(path).defined();
    if (!is_tensor && !find_submodule(path)) missing(node, "the bag of attributes");
  }
}

GraphModule::~GraphModule() = default;

void GraphModule::set_graph(Graph graph) {
  graph_ = std::move(graph);
  graph_was_replaced();
  attributes_changed();
}

void GraphModule::take_mode(const GraphModule& from) {
  set_own_mode(*this, from.is_training());
  fixed_mode_ = from.fixed_mode_;
}

void GraphModule::train(bool on) {
  if (fixed_mode_.empty()) return Module::train(on);
  if (on == is_training()) return;  // with the modes that its modules have
  throw Error(ErrorKind::unsupported,
              class_name_ + (on ? ".train()" : ".eval()") + ": the graph does not follow: " + fixed_mode_);
}

void GraphModule::attributes_changed() {
  micro_batches_ = {};
  const std::lock_guard lock(plan_mutex_);
  plan_ = nullptr;
}

// ── Attributes ─────────────────────────────────────────────────────────────────────────────────────────────────────

torch::Tensor GraphModule::find_attribute(const std::string& path) const { return find_tensor(*this, path); }

torch::Tensor GraphModule::attribute(const std::string& path) const {
  torch::Tensor tensor = find_attribute(path);
  if (!tensor.defined()) throw Error(ErrorKind::not_found, "the module has no parameter or buffer '" + path + "'");
  return tensor;
}

bool GraphModule::is_parameter(const std::string& path) const {
  bool is_parameter = false;
  return find_tensor(*this, path, &is_parameter).defined() && is_parameter;
}

std::shared_ptr<Module> GraphModule::find_submodule(const std::string& path) const { return find_child(*this, path); }

std::shared_ptr<Module> GraphModule::submodule(const std::string& path) const {
  std::shared_ptr<Module> module = find_submodule(path);
  if (!module) throw Error(ErrorKind::not_found, "the module has no submodule '" + path + "'");
  return module;
}

std::shared_ptr<const LeafModule> GraphModule::leaf(const std::string& path) const {
  const std::shared_ptr<Module> module = find_submodule(path);
  if (!module) return nullptr;
  if (auto leaf = std::dynamic_pointer_cast<const LeafModule>(module)) return leaf;
  return leaf_from_module(*module);
}

Contract GraphModule::contract() const {
  Contract all(graph_);
  for (const Node* call : graph_.find_nodes(Op::call_module)) {
    const auto nested = std::dynamic_pointer_cast<const GraphModule>(find_submodule(call->target().str()));
    if (nested) all.add(Contract(nested->graph(), names_in(*call, nested->graph())));
  }
  return all;
}

std::string GraphModule::module_type(const std::string& path) const {
  const std::shared_ptr<Module> module = find_submodule(path);
  if (!module) return {};
  if (const auto* leaf = dynamic_cast<const LeafModule*>(module.get())) return leaf->type_name();
  if (const auto* graph_module = dynamic_cast<const GraphModule*>(module.get())) return graph_module->class_name();
  if (const ModuleType* type = find_module_type(*module)) return split_path(type->qualified_name).second;
  return module->name();
}

Module& GraphModule::holder_for(const std::string& path, std::string& name) {
  auto [parent, last] = split_path(path);
  if (last.empty()) throw Error(ErrorKind::invalid_argument, "'" + path + "' is no path: its last part is empty");
  name = std::move(last);
  return make_holders(*this, parent);
}

void GraphModule::set_attribute(const std::string& path, const torch::Tensor& tensor) {
  bool is_parameter = false;
  const bool trained = find_tensor(*this, path, &is_parameter).defined() ? is_parameter : tensor.requires_grad();
  trained ? set_parameter(path, tensor) : set_buffer(path, tensor);
}

void GraphModule::set_parameter(const std::string& path, const torch::Tensor& tensor) {
  std::string name;
  put_where_it_is_read(*this, holder_for(path, name), path, tensor, /*is_parameter=*/true);
  attributes_changed();
}

void GraphModule::set_buffer(const std::string& path, const torch::Tensor& tensor) {
  std::string name;
  put_where_it_is_read(*this, holder_for(path, name), path, tensor, /*is_parameter=*/false);
  attributes_changed();
}

void GraphModule::add_submodule(const std::string& path, std::shared_ptr<Module> module) {
  require_addable(*this, path, module);
  std::string name;
  Module& holder = holder_for(path, name);
  if (find_tensor(holder, name).defined()) {
    throw Error(ErrorKind::invalid_argument, "'" + path + "' is a tensor; remove it before putting a module there");
  }
  if (find_child(holder, name)) {
    holder.replace_module(name, std::move(module));
  } else {
    holder.register_module(name, std::move(module));
  }
  attributes_changed();
}

void GraphModule::replace_submodule(const std::string& path, std::shared_ptr<Module> module) {
  const std::shared_ptr<Module> present = submodule(path);
  add_submodule(path, module);
  module->train(present->is_training());
}

bool GraphModule::delete_submodule(const std::string& path) {
  if (!find_submodule(path)) return false;
  std::string name;
  holder_for(path, name).unregister_module(name);
  attributes_changed();
  return true;
}

bool GraphModule::delete_attribute(const std::string& path) {
  if (!find_attribute(path).defined()) return false;
  std::string name;
  remove_tensor(holder_for(path, name), name);
  attributes_changed();
  return true;
}

std::size_t GraphModule::delete_all_unused_submodules() {
  // By module, not by path: one module may be there under several.
  std::set<std::pair<const Module*, std::string>> used;  // on the way to, or at, something that a node names
  std::unordered_set<const Module*> whole;               // called, or read as a value that operators call
  for (const Node& node : graph_.nodes()) {
    if (!names_attribute(node)) continue;
    const Module* at = this;
    std::string_view path = node.target().view();
    while (at && !path.empty()) {
      const std::string name(path.substr(0, path.find('.')));
      path.remove_prefix(std::min(path.size(), name.size() + 1));
      used.emplace(at, name);
      const auto children = at->named_children();
      const auto* child = children.find(name);
      at = child ? child->get() : nullptr;
    }
    if (!at) continue;
    for (const auto& inner : at->modules()) whole.insert(inner.get());
  }
  std::size_t removed = 0;
  std::unordered_set<std::string> removed_paths;
  for (const auto& item : named_modules("", /*include_self=*/false)) {
    const std::string& path = item.key();
    bool gone = false;
    for (std::size_t dot = path.find('.'); dot != std::string::npos && !gone; dot = path.find('.', dot + 1))
      gone = removed_paths.contains(path.substr(0, dot));
    if (gone) continue;
    const std::size_t dot = path.rfind('.');
    const auto holder = dot == std::string::npos ? nullptr : find_submodule(path.substr(0, dot));
    const Module* parent = holder ? holder.get() : this;
    if (whole.contains(parent) || used.contains({parent, dot == std::string::npos ? path : path.substr(dot + 1)}))
      continue;
    delete_submodule(path);
    removed_paths.insert(path);
    for (const auto& below : item.value()->modules()) removed += dynamic_cast<const Holder*>(below.get()) == nullptr;
  }
  return removed;
}

namespace {

/// What stands for a module that nothing calls and of which some tensors are read.
std::shared_ptr<Holder> holder_of(const Module& module) {
  const auto holder = std::make_shared<Holder>();
  for (const auto& item : module.named_parameters(false)) put_tensor(*holder, item.key(), item.value(), true);
  for (const auto& item : module.named_buffers(false)) put_tensor(*holder, item.key(), item.value(), false);
  for (const auto& item : module.named_children()) holder->register_module(item.key(), item.value());
  set_own_mode(*holder, module.is_training());
  return holder;
}

}  // namespace

std::size_t GraphModule::delete_all_unused_attributes() {
  // By module, not by path: one module may be there under several.
  std::unordered_set<const Module*> called;
  std::set<std::pair<const Module*, std::string>> used;
  for (const Node& node : graph_.nodes()) {
    const std::string path = node.target().str();
    // Called, or read as a value that operators call.
    if (const auto module = names_attribute(node) ? find_submodule(path) : nullptr) {
      for (const auto& inner : module->modules()) called.insert(inner.get());
    } else if (node.is(Op::get_attr)) {
      const std::size_t dot = path.rfind('.');
      const auto holder = dot == std::string::npos ? nullptr : find_submodule(path.substr(0, dot));
      used.emplace(holder ? holder.get() : this, dot == std::string::npos ? path : path.substr(dot + 1));
    }
  }
  std::vector<std::string> unused, halved;
  const auto look_at = [&](const std::string& path, const Module& module) {
    if (called.contains(&module)) return;
    const std::string prefix = path.empty() ? path : path + ".";
    const std::size_t before = unused.size();
    const auto unless_used = [&](const std::string& name) {
      if (!used.contains({&module, name})) unused.push_back(prefix + name);
    };
    for (const auto& item : module.named_parameters(false)) unless_used(item.key());
    for (const auto& item : module.named_buffers(false)) unless_used(item.key());
    if (unused.size() > before && makes_its_tensors(module)) halved.push_back(path);
  };
  look_at("", *this);
  for (const auto& item : named_modules("", false)) look_at(item.key(), *item.value());
  for (const std::string& path : halved) add_submodule(path, holder_of(*submodule(path)));
  for (const std::string& path : unused) delete_attribute(path);
  return unused.size();
}

std::string GraphModule::fresh_path(const std::string& wanted) const {
  const std::string stem = beside_modules(*this, wanted);
  std::string path = stem;
  for (int i = 1; find_attribute(path).defined() || find_submodule(path); ++i) path = stem + "_" + std::to_string(i);
  return path;
}

// ── torch::nn::Module ──────────────────────────────────────────────────────────────────────────────────────────────

void GraphModule::pretty_print(std::ostream& stream) const { stream << class_name_; }

}  // namespace fx
