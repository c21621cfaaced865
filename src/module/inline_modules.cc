#include <fxgraph/module/inline_modules.h>

#include <torch/nn/modules/container/sequential.h>

#include <fxgraph/effects/inlining.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>

namespace fx {
namespace {

std::shared_ptr<const Graph> body_of(const std::shared_ptr<torch::nn::Module>& module, bool evaluated) {
  if (const auto* leaf = dynamic_cast<const LeafModule*>(module.get()))
    return leaf->body_in_mode(leaf->is_training() && !evaluated);
  if (const auto* nested = dynamic_cast<const GraphModule*>(module.get()))
    return {module, &nested->graph()};  // shares the module's life
  if (dynamic_cast<const torch::nn::SequentialImpl*>(module.get())) {
    Graph chain;
    Node* at = &chain.placeholder("input");
    for (const auto& child : module->named_children()) at = &chain.call_module(child.key(), {at});
    chain.output(at);
    return std::make_shared<const Graph>(std::move(chain));
  }
  const ModuleType* type = module ? find_module_type(*module) : nullptr;
  if (!type || !type->body) return nullptr;
  const bool other = evaluated && module->is_training();
  if (other && !type->evaluated && (!type->follows_mode || type->follows_mode(*module))) return nullptr;
  std::optional<Graph> body = other && type->evaluated ? type->evaluated(*module) : type->body(*module);
  return body ? std::make_shared<const Graph>(std::move(*body)) : nullptr;
}

}  // namespace

std::shared_ptr<const Graph> module_body(const std::shared_ptr<torch::nn::Module>& module) {
  return body_of(module, /*evaluated=*/false);
}
std::shared_ptr<const Graph> evaluated_body(const std::shared_ptr<torch::nn::Module>& module) {
  return body_of(module, /*evaluated=*/true);
}

Graph inline_modules(const GraphModule& module, const ModuleBodies& others) {
  return std::move(inline_calls(module.graph(), [&](const Node&, const std::string& path) {
                     const auto other = others.find(path);
                     return other == others.end() ? module_body(module.find_submodule(path)) : other->second;
                   }).graph);
}

void ask_inputs_for_ranks(const GraphModule& module, Graph& graph) { ask_inputs_for_ranks(graph, module_info(module)); }

}  // namespace fx
