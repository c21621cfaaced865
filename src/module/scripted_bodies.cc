#include <fxgraph/module/scripted_bodies.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fxgraph/module/inline_bodies.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

std::shared_ptr<LeafModule> scripted_leaf(const GraphModule& module, const Node& node) {
  if (!node.is(Op::call_module) || !node.kwargs().empty() || node.args().empty() || node.args().size() > 2)
    return nullptr;
  auto leaf = std::dynamic_pointer_cast<LeafModule>(module.find_submodule(node.target().str()));
  if (!leaf || !leaf->script() || leaf->body()) return nullptr;
  const ModuleType* type = find_module_type(leaf->qualified_name());
  return type && type->scripted_body ? leaf : nullptr;
}

}  // namespace

void write_out_traced_leaves(GraphModule& module) {
  try {
    if (auto graph = inline_traced_bodies(module)) module.set_graph(std::move(*graph));
  } catch (const Error&) {
    // They stay calls.
  }
}

bool has_scripted_leaves(const GraphModule& module) {
  for (const Node& node : module.graph().nodes()) {
    if (scripted_leaf(module, node)) return true;
  }
  return false;
}

ModuleBodies scripted_bodies(const GraphModule& module, const Shapes& shapes) {
  std::map<std::string, std::pair<std::shared_ptr<LeafModule>, std::vector<const Node*>>> calls;
  for (const Node& node : module.graph().nodes()) {
    const std::shared_ptr<LeafModule> leaf = scripted_leaf(module, node);
    if (!leaf || leaf->is_training()) continue;
    auto& known = calls[node.target().str()];
    known.first = leaf;
    known.second.push_back(&node);
  }
  ModuleBodies bodies;
  for (const auto& [path, leaf_and_calls] : calls) {
    std::vector<CallForm> forms;
    for (const Node* node : leaf_and_calls.second) {
      const Node* input = node->arg(0).node_or_null();
      const TensorInfo* info = input ? shapes[*input].tensor() : nullptr;
      const bool has_state = node->args().size() == 2 && !node->arg(1).is_none();
      const bool drops_none = node->args().size() == 2 && !has_state;  // the body would take one argument less
      forms.push_back({info && !drops_none ? static_cast<int>(info->sizes.size()) : -1, has_state});
    }
    if (!std::ranges::all_of(forms, [&](const CallForm& each) { return each == forms[0]; })) continue;
    const LeafModule& called = *leaf_and_calls.first;
    if (auto body = find_module_type(called.qualified_name())->scripted_body(called, forms[0]))
      bodies.emplace(path, std::move(body));
  }
  return bodies;
}

}  // namespace fx::internal
