#include <fxgraph/module/inline_modules.h>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/effects/inlining.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/call.h>

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

namespace {

bool may_change_a_rank(const Node& node) {
  const NodeEffects effects = effects_of(node);
  return node.is(Op::call_module) || effects.restructures || effects.unknown;
}

// What goes into a layer that gives as many dimensions as it takes; null for other calls.
Node* input_of_same_rank(const GraphModule& module, const Node& layer) {
  const Call call = call_of(layer);
  if (!call) return nullptr;
  const std::string_view packet = packet_of(call.schema().target.view());
  const auto node_of = [&](const char* name) -> Node* {
    const Argument* argument = call.argument(name);
    return argument ? argument->node_or_null() : nullptr;
  };
  if (packet == "aten::linear") {  // a vector for a weight takes one dimension away
    const Node* weight = node_of("weight");
    if (!weight || !weight->is(Op::get_attr)) return nullptr;
    const at::Tensor tensor = module.find_attribute(weight->target().str());
    if (!tensor.defined() || tensor.dim() != 2) return nullptr;
  } else if (!packet.starts_with("aten::conv") && packet != "aten::batch_norm") {
    return nullptr;
  }
  return node_of("input");
}

}  // namespace

void ask_inputs_for_ranks(const GraphModule& module, Graph& graph) {
  if (std::ranges::any_of(graph.nodes(), may_change_a_rank)) return;
  for (Node& node : graph.nodes()) {
    const Call call = call_of(node);
    const Argument* first = call && packet_of(call.schema().target.view()) == "aten::dim" ? call.argument(0) : nullptr;
    Node* asked = first ? first->node_or_null() : nullptr;
    while (Node* before = asked ? input_of_same_rank(module, *asked) : nullptr) {
      node.replace_input_with(*asked, *before);
      asked = before;
    }
  }
}

}  // namespace fx
