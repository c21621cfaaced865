#include <fxgraph/module/module_effects.h>

#include <map>
#include <memory>
#include <string>

namespace fx {
namespace {

void merge(NodeEffects& into, const NodeEffects& more) {
  into.writes |= more.writes;
  into.random |= more.random;
  into.side_effect |= more.side_effect;
  into.unknown |= more.unknown;
  into.may_alias |= more.may_alias;
}

// A write to a value that the body itself made is nobody's business.
bool writes_outside(const Node& node) {
  bool outside = false;
  for_each_written(node, [&](const Argument& written) {
    for_each_node(written, [&](Node& target) {
      const Node* at = &target;
      while (at->is(Op::call_function)) {
        Node* source = nullptr;
        for_each_aliased_input(*at, [&](Node& input) { source = source ? source : &input; });
        if (!source) return;
        at = source;
      }
      outside = true;
    });
  });
  return outside;
}

bool is_of_torch(const torch::nn::Module& module) {
  if (const auto* leaf = dynamic_cast<const LeafModule*>(&module)) return leaf->qualified_name().starts_with("torch.nn.");
  return module.name().starts_with("torch::nn::");
}

NodeEffects effects_of_body(const Graph& body) {
  NodeEffects all;
  const Node* output = body.output_node();
  const bool gives_something = output && !output->arg(0).is_none();
  for (const Node& node : body.nodes()) {
    if (node.is(Op::placeholder) || node.is(Op::get_attr)) continue;
    // A body may return what it was given as it is, as Identity does.
    if (node.is(Op::output)) node.for_each_input([&](Node& made) { all.may_alias |= made.is(Op::placeholder); });
    NodeEffects effects = effects_of(node);
    if (effects.writes) effects.writes = writes_outside(node);
    // Checking its input and raising is what calling a module may always do; one that gives nothing is there for that.
    if (node.target() == "torch._assert") effects.side_effect = !gives_something;
    merge(all, effects);
  }
  return all;
}

}  // namespace

ModuleEffects module_effects(const GraphModule& module) {
  return [&module](const Node& call) {
    NodeEffects effects;
    const std::string path = call.target().str();
    if (const auto leaf = module.leaf(path); leaf && leaf->body()) return effects_of_body(*leaf->body());
    const auto called = module.find_submodule(path);
    if (const auto* nested = dynamic_cast<const GraphModule*>(called.get())) return effects_of_body(nested->graph());
    effects.may_alias = true;
    // LibTorch's own modules without a body keep nothing in eval mode; of others nobody knows what they do.
    effects.unknown = called && (called->is_training() || !is_of_torch(*called));
    return effects;
  };
}

std::function<Symbol(Symbol)> attribute_storage(const GraphModule& module) {
  std::map<const void*, Symbol> first;
  auto shared = std::make_shared<std::map<std::string, Symbol>>();
  const auto add = [&](const auto& named) {
    for (const auto& item : named) {
      if (!item.value().defined() || !item.value().has_storage()) continue;
      const auto [known, is_new] = first.emplace(item.value().storage().unsafeGetStorageImpl(), Symbol(item.key()));
      if (!is_new) shared->emplace(item.key(), known->second);
    }
  };
  add(module.named_parameters());
  add(module.named_buffers());
  return [shared](Symbol path) {
    const auto found = shared->find(path.str());
    return found == shared->end() ? path : found->second;
  };
}

}  // namespace fx
