#include <fxgraph/module/module_effects.h>

#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/ops/python_symbols.h>

namespace fx {
namespace {

void merge(NodeEffects& into, const NodeEffects& more) {
  into.writes |= more.writes;
  into.random |= more.random;
  into.side_effect |= more.side_effect;
  into.unknown |= more.unknown;
  into.restructures |= more.restructures;
}

const std::string& type_of(const torch::nn::Module& module) {
  const auto* leaf = dynamic_cast<const LeafModule*>(&module);
  return leaf ? leaf->qualified_name() : module.name();
}

bool is_of_torch(const torch::nn::Module& module) {
  if (const auto* leaf = dynamic_cast<const LeafModule*>(&module))
    return leaf->qualified_name().starts_with("torch.nn.");
  return module.name().starts_with("torch::nn::");
}

/// Whether `test` holds of the module and of those in it; a leaf is asked for itself.
template <typename Test>
bool holds_of_all(const torch::nn::Module& root, const Test& test) {
  if (dynamic_cast<const LeafModule*>(&root)) return test(root);
  return std::ranges::all_of(root.modules(), [&](const auto& module) { return test(*module); });
}

/// Whether the option of a module without a body is there and not off. Modules of C++ say so where they are printed: it
/// is no tensor, and each type has its own. Scripts have it among their attributes or constants; one that has lost it
/// is of no type that has none.
bool is_on(const torch::nn::Module& module, const std::string& option) {
  const auto* leaf = dynamic_cast<const LeafModule*>(&module);
  if (!leaf) {
    std::ostringstream text;
    module.pretty_print(text);
    return text.str().find(option + (option == "inplace" ? "=true" : "=")) != std::string::npos;
  }
  const auto is_set = [](const c10::IValue& value) { return !value.isNone() && !(value.isBool() && !value.toBool()); };
  if (leaf->script()) {
    if (leaf->script()->hasattr(option)) return is_set(leaf->script()->attr(option));
    const auto constant = leaf->script()->type()->findConstantSlot(option);
    if (constant) return is_set(leaf->script()->type()->getConstant(*constant));
  }
  return option == "max_norm" && leaf->qualified_name().find("Embedding") != std::string::npos;
}

/// Where samples are taken is drawn in evaluation too.
bool draws_in_evaluation(const torch::nn::Module& root) {
  const auto modules = root.modules(/*include_self=*/false);
  const auto draws = [](const torch::nn::Module& module) {
    return type_of(module).find("FractionalMaxPool") != std::string::npos;
  };
  return draws(root) || std::ranges::any_of(modules, [&](const auto& module) { return draws(*module); });
}

/// InstanceNorm writes its running statistics also in evaluation, each the mean of copies of itself, and rounds.
/// Embeddings with a largest norm scale the rows of their weight that they look up.
bool writes_in_evaluation(const torch::nn::Module& module) {
  if (is_on(module, "max_norm")) return true;
  if (type_of(module).find("InstanceNorm") == std::string::npos) return false;
  const auto buffers = module.named_buffers(/*recurse=*/false);
  const torch::Tensor* mean = buffers.find("running_mean");
  return mean && mean->defined();
}

/// LibTorch's own modules do, Sequential as far as what it holds does.
bool keeps_nothing_in_evaluation(const torch::nn::Module& root) {
  const auto does = [](const torch::nn::Module& module) {
    return !module.is_training() && is_of_torch(module) && !writes_in_evaluation(module);
  };
  return holds_of_all(root, does);
}

/// A write to a value that the body itself made is nobody's business; what it returns may be what it was given, or a
/// view of it: Identity, Flatten, Dropout in evaluation mode.
NodeEffects effects_of_body(const Graph& body, const ModuleEffects& modules) {
  NodeEffects all;
  const Effects effects(body, {.modules = modules});
  const internal::TrackedEffects origins(body, modules);
  const auto is_outside = [&](Effects::Set set) { return effects.is_external(set); };
  const auto is_of_state = [&](const Node* node) {
    return node->is(Op::get_attr) || effects.of(*node).may_alias_state;
  };
  const Node* output = body.output_node();
  const bool gives_something = output && !output->arg(0).is_none();
  for (const Node& node : body.nodes()) {
    if (!node.is_callable()) continue;
    NodeEffects own = effects.of(node);
    own.writes &= node.is(Op::call_module) || std::ranges::any_of(effects.written_sets(node), is_outside);
    own.restructures &= own.writes;
    // Checking its input and raising is what calling a module may always do; one that gives nothing is there for that.
    if (node.target() == python::kAssert) own.side_effect = !gives_something;
    merge(all, own);
  }
  if (!output) return all;
  bool surely = true;
  output->for_each_input([&](const Node& made) {
    for (const Effects::Set set : effects.sets(made)) {
      all.may_alias |= is_outside(set);
      all.may_alias_state |= std::ranges::any_of(effects.members(set), is_of_state);
    }
    surely &= origins.origin_of(made).node->is(Op::placeholder);
  });
  all.aliases = all.may_alias && surely;
  return all;
}

NodeEffects effects_of_module(const GraphModule& module, const std::string& path) {
  const auto called = module.find_submodule(path);
  if (const auto* nested = dynamic_cast<const GraphModule*>(called.get()))
    return effects_of_body(nested->graph(), module_effects(*nested));
  if (const auto leaf = module.leaf(path); leaf && leaf->body()) return effects_of_body(*leaf->body(), {});
  NodeEffects effects;
  effects.may_alias = true;
  // LibTorch's own modules return none of their tensors.
  effects.may_alias_state = called && !holds_of_all(*called, is_of_torch);
  // A module without a body may write to what it is given; of those of others nobody knows what they do.
  effects.unknown = called && !keeps_nothing_in_evaluation(*called);
  effects.writes = called && is_on(*called, "inplace");
  effects.random = called && draws_in_evaluation(*called);
  return effects;
}

/// What calls of modules do, worked out once for each module that is called.
class ModuleTable {
 public:
  explicit ModuleTable(const GraphModule& module) : module_(module) {}

  const NodeEffects& effects(Symbol path) {
    const auto called = module_.find_submodule(path.str());
    Entry& entry = entries_[path];
    const bool training = called && called->is_training();
    if (!entry.known || entry.module != called || entry.training != training)
      entry = {true, training, called, effects_of_module(module_, path.str())};
    return entry.effects;
  }

 private:
  struct Entry {
    bool known = false;
    bool training = false;
    std::shared_ptr<const torch::nn::Module> module;
    NodeEffects effects;
  };
  const GraphModule& module_;
  std::unordered_map<Symbol, Entry> entries_;
};

/// Which tensors share storage, and which a module holds. Made when it is first asked for.
class Storages {
 public:
  explicit Storages(const GraphModule& module) : module_(module) {}

  Symbol of(Symbol path) {
    find();
    const auto found = shared_.find(path);
    return found == shared_.end() ? path : found->second;
  }

  void visit(Symbol module, const std::function<void(Symbol)>& visit) {
    const auto called = module_.find_submodule(module.str());
    if (!called) return;
    const auto each = [&](const auto& named) {
      for (const auto& item : named) visit(of(Symbol(join_path(module.str(), item.key()))));
    };
    each(called->named_parameters());
    each(called->named_buffers());
  }

 private:
  void find() {
    if (found_) return;
    found_ = true;
    std::map<const void*, Symbol> first;
    const auto add = [&](const auto& named) {
      for (const auto& item : named) {
        if (!item.value().defined() || !item.value().has_storage()) continue;
        const Symbol path(item.key());
        const auto [known, is_new] = first.emplace(item.value().storage().unsafeGetStorageImpl(), path);
        if (!is_new) shared_.emplace(path, known->second);
      }
    };
    add(module_.named_parameters());
    add(module_.named_buffers());
  }

  const GraphModule& module_;
  bool found_ = false;
  std::unordered_map<Symbol, Symbol> shared_;
};

}  // namespace

ModuleEffects module_effects(const GraphModule& module) {
  const auto table = std::make_shared<ModuleTable>(module);
  const auto storages = std::make_shared<Storages>(module);
  ModuleEffects effects;
  effects.call = [table](const Node& call) { return table->effects(call.target()); };
  effects.storage = [storages](Symbol path) { return storages->of(path); };
  effects.state = [storages](Symbol path, const std::function<void(Symbol)>& visit) { storages->visit(path, visit); };
  return effects;
}

}  // namespace fx
