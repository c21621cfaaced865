#include <fxgraph/module/module_info.h>

#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/module_costs.h>
#include <fxgraph/module/traced_body.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>

namespace fx {
namespace {

void merge(NodeEffects& into, const NodeEffects& more) {
  into.writes |= more.writes;
  into.random |= more.random;
  into.side_effect |= more.side_effect;
  into.unknown |= more.unknown;
  into.restructures |= more.restructures;
}

/// The row of the module's type, or, of a leaf, of that type of torch.nn; else null.
const ModuleType* row_of(const torch::nn::Module& module) {
  const auto* leaf = dynamic_cast<const LeafModule*>(&module);
  if (!leaf) return find_module_type(module);
  return leaf->qualified_name().starts_with("torch.nn.") ? find_module_type(leaf->qualified_name()) : nullptr;
}

bool is_of_torch(const torch::nn::Module& module) {
  if (const auto* leaf = dynamic_cast<const LeafModule*>(&module))
    return leaf->qualified_name().starts_with("torch.nn.");
  return module.name().starts_with("torch::nn::");
}

/// Whether training may make another of it than evaluation; of scripts nobody knows.
bool trains(const torch::nn::Module& module) {
  const ModuleType* row = find_module_type(module);
  return module.is_training() && !(row && row->follows_mode && !row->follows_mode(module));
}

/// Asks the module and those in it; a leaf for itself.
template <typename Ask>
void ask_each(const torch::nn::Module& root, const Ask& ask) {
  ask(root);
  if (dynamic_cast<const LeafModule*>(&root)) return;
  for (const auto& module : root.modules(/*include_self=*/false)) ask(*module);
}

/// Whether the option of a module is there and not off. Scripts have it among their attributes or constants, modules of
/// C++ among what they are made with.
bool is_on(const torch::nn::Module& module, const std::string& option) {
  const auto* leaf = dynamic_cast<const LeafModule*>(&module);
  if (!leaf) {
    const ModuleType* row = find_module_type(module);
    const auto parameters = row && row->hyper_parameters ? row->hyper_parameters(module) : std::nullopt;
    return parameters && std::ranges::any_of(*parameters, [&](const HyperParameter& parameter) {
             return parameter.name == option && !parameter.value.is_none() && parameter.value != Argument(false);
           });
  }
  const auto is_set = [](const c10::IValue& value) { return !value.isNone() && !(value.isBool() && !value.toBool()); };
  if (leaf->script()) {
    if (leaf->script()->hasattr(option)) return is_set(leaf->script()->attr(option));
    const auto constant = leaf->script()->type()->findConstantSlot(option);
    if (constant) return is_set(leaf->script()->type()->getConstant(*constant));
  }
  // One that has lost it is of no type that has none.
  return option == "max_norm" && leaf->qualified_name().find("Embedding") != std::string::npos;
}

/// A write to a value that the body itself made is nobody's business; what it returns may be what it was given, or a
/// view of it: Identity, Flatten, Dropout in evaluation mode.
NodeEffects effects_of_body(const Graph& body, const ModuleInfo& modules) {
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

/// Of a module without a body, by its type and those of what it holds: LibTorch's own write to what they are given as
/// their options say, scale the rows of an embedding that they look up, and return none of their tensors; of those of
/// others nobody knows what they do, but by their rows.
NodeEffects effects_of_type(const torch::nn::Module& root) {
  NodeEffects all{.may_alias = true};
  if (const ModuleType* row = row_of(root); row && row->effects && !is_of_torch(root)) return row->effects(root);
  ask_each(root, [&](const torch::nn::Module& module) {
    const ModuleType* row = row_of(module);
    if (row && row->effects) merge(all, row->effects(module));
    all.writes |= is_on(module, "inplace");
    all.unknown |= trains(module) || !is_of_torch(module) || is_on(module, "max_norm");
    all.may_alias_state |= !is_of_torch(module);
  });
  return all;
}

NodeEffects effects_of_module(const GraphModule& module, const std::string& path) {
  const auto called = module.find_submodule(path);
  if (const auto* nested = dynamic_cast<const GraphModule*>(called.get()))
    return effects_of_body(nested->graph(), module_info(*nested));
  if (const auto leaf = module.leaf(path); leaf && leaf->body()) return effects_of_body(*leaf->body(), {});
  return called ? effects_of_type(*called) : NodeEffects{.may_alias = true};
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

namespace {

/// As traced, where the module is as it was; else what it is known to compute, of a call with as many inputs.
std::shared_ptr<const Graph> operators_of(const GraphModule& module, const Node& call, const std::string& path) {
  const auto called = module.find_submodule(path);
  if (!called) return nullptr;
  const Meta* meta = call.find_meta();
  const TracedBody* traced = meta ? meta->get<TracedBody>(meta_key::kTracedBody) : nullptr;
  if (traced && traced->training == called->is_training()) return traced->graph;
  std::shared_ptr<const Graph> body = module_body(called);
  const bool fits = body && call.kwargs().empty() && call.args().size() == call.all_input_nodes().size() &&
                    call.args().size() == body->placeholders().size();
  return fits ? body : nullptr;
}

/// Of graphs over paths below `prefix`.
ModuleInfo info_below(const GraphModule& module, const std::string& prefix) {
  const auto at = [prefix](std::string_view path) { return prefix + std::string(path); };
  return {
      .type = [&module, at](std::string_view path) { return module.module_type(at(path)); },
      .body = [&module, at](std::string_view path) { return module_body(module.find_submodule(at(path))); },
      .evaluated = [&module, at](std::string_view path) { return evaluated_body(module.find_submodule(at(path))); },
      .operators = [&module, at](const Node& call) { return operators_of(module, call, at(call.target().view())); },
      .tensor = [&module, at](std::string_view path) -> std::optional<TensorInfo> {
        const at::Tensor tensor = module.find_attribute(at(path));
        return tensor.defined() ? std::optional(tensor_info(tensor)) : std::nullopt;
      },
      .below = [&module, at](std::string_view path) { return info_below(module, at(path) + "."); },
      .cost = [&module, at](const Node& call) { return internal::cost_of_module(module, at(call.target().view())); }};
}

}  // namespace

ModuleInfo module_info(const GraphModule& module) {
  const auto table = std::make_shared<ModuleTable>(module);
  const auto storages = std::make_shared<Storages>(module);
  ModuleInfo info = info_below(module, "");
  info.effects = [table](const Node& call) { return table->effects(call.target()); };
  info.storage = [storages](Symbol path) { return storages->of(path); };
  info.state = [storages](Symbol path, const std::function<void(Symbol)>& visit) { storages->visit(path, visit); };
  return info;
}

std::size_t eliminate_dead_code(GraphModule& module) {
  return eliminate_dead_code(module.graph(), module_info(module));
}
std::size_t legalize_graph(GraphModule& module) {
  return legalize_graph(module.graph(), {.modules = module_info(module)});
}
std::string get_node_target(const GraphModule& module, const Node& node) {
  return get_node_target(node, module_info(module));
}
std::vector<OperatorCount> count_operators(const GraphModule& module) {
  return count_operators(module.graph(), module_info(module));
}
std::string operator_table(const GraphModule& module) { return operator_table(module.graph(), module_info(module)); }

}  // namespace fx
