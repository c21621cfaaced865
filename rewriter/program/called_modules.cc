#include <fxgraph/rewriter/program/called_modules.h>

#include <algorithm>

#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/text/print.h>

namespace fx::internal {
namespace {

// True when train() and eval() change what the module alone, without those below it, computes.
bool follows_mode_itself(torch::nn::Module& module) {
  const auto text_of = [](const Graph* body) { return body ? print_graph(*body) : std::string(); };
  if (dynamic_cast<const GraphModule*>(&module) || dynamic_cast<const Holder*>(&module)) return false;
  if (const auto* leaf = dynamic_cast<const LeafModule*>(&module)) {
    const std::string training = text_of(leaf->body_in_mode(true).get());
    return training.empty() || training != text_of(leaf->body_in_mode(false).get());
  }
  const ModuleType* type = find_module_type(module);
  if (type && type->follows_mode) return type->follows_mode(module);
  if (!type || !type->body) return true;  // nobody knows
  const bool mode = module.is_training();
  const auto text_in = [&](bool training) {
    set_own_mode(module, training);
    const std::optional<Graph> body = type->body(module);
    return text_of(body ? &*body : nullptr);
  };
  const bool follows = text_in(true) != text_in(false);
  set_own_mode(module, mode);
  return follows;
}

bool follows_mode(torch::nn::Module& module) {
  if (!dynamic_cast<const GraphModule*>(&module)) return follows_mode_itself(module);
  return std::ranges::any_of(module.modules(/*include_self=*/false),
                             [](const auto& below) { return follows_mode_itself(*below); });
}

}  // namespace

CalledModules::CalledModules(GraphModule& module) : module_(module) {
  for (const Node& node : module_.graph().nodes()) {
    if (!node.is(Op::call_module)) continue;
    Called& called = called_[node.target().str()];
    if (called.times++ == 0) called.module = module_.find_submodule(node.target().str());
  }
}

void CalledModules::fix_mode_where_one_is_gone(std::string_view who) {
  if (!module_.fixed_mode().empty()) return;
  for (const Node& node : module_.graph().nodes()) {
    if (node.is(Op::call_module)) --called_[node.target().str()].times;
  }
  for (const auto& [path, called] : called_) {
    if (called.times <= 0 || !called.module || !follows_mode(*called.module)) continue;
    module_.fix_mode(std::string(who) + " has put what " + path + " does in " +
                     (module_.is_training() ? "training" : "evaluation") +
                     " mode in its place; switch the mode of the module before that");
    return;
  }
}

}  // namespace fx::internal
