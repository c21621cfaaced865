#include <fxgraph/module/inline_modules.h>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

// The recursion is as deep as modules are nested.
class Inliner {
 public:
  Inliner(const GraphModule& module, const ModuleBodies& others) : module_(module), others_(others) {}

  Graph run() {
    NodeMap<Argument> values(module_.graph());
    for (const Node& node : module_.graph().nodes()) {
      const auto value_of = [&](Node& input) { return values[input]; };
      if (node.is(Op::call_module)) {
        values[node] = call(node, "", node.name(), value_of);
      } else if (std::optional<Argument> element = element_of_result(node, values)) {
        values[node] = std::move(*element);
      } else {
        values[node] = result_.node_copy(node, value_of);
      }
    }
    return std::move(result_);
  }

 private:
  using Map = std::function<Argument(Node&)>;

  // A body's result is its parts: nobody is left who packs them.
  static std::optional<Argument> element_of_result(const Node& node, const NodeMap<Argument>& values) {
    const std::optional<Element> taken = taken_element(node);
    return taken ? element_of(values[*taken->of], taken->index) : std::nullopt;
  }

  /// Writes out the module that `node` calls, found below `prefix`; the value is named `name` where it is one node.
  Argument call(const Node& node, const std::string& prefix, const std::string& name, const Map& value_of) {
    const std::string path = join_path(prefix, node.target().view());
    const auto other = others_.find(path);
    const std::shared_ptr<const Graph> body =
        other == others_.end() ? module_body(module_.find_submodule(path)) : other->second;
    if (!body) {
      Node& copy = result_.node_copy(node, value_of);
      copy.set_target(path);
      return copy;
    }
    return inline_body(*body, path, name, bind(node, *body, value_of), node.find_meta());
  }

  Argument inline_body(const Graph& body, const std::string& path, const std::string& name,
                       const std::vector<Argument>& inputs, const Meta* meta) {
    NodeMap<Argument> values(body);
    const auto value_of = [&](Node& input) { return values[input]; };
    const Node* output = body.output_node();
    const Node* last = output && !output->args().empty() ? output->arg(0).node_or_null() : nullptr;
    std::size_t next_input = 0;
    for (const Node& node : body.nodes()) {
      const std::string inner = &node == last ? name : name + "_" + node.name();
      switch (node.op()) {
        case Op::placeholder: values[node] = inputs.at(next_input++); continue;
        case Op::output: return node.args().empty() ? Argument() : map_nodes(node.arg(0), value_of);
        case Op::call_module: values[node] = call(node, path, inner, value_of); continue;
        case Op::get_attr: values[node] = attribute(join_path(path, node.target().view())); continue;
        default: break;
      }
      if (std::optional<Argument> element = element_of_result(node, values)) {
        values[node] = std::move(*element);
        continue;
      }
      Node& copy = result_.node_copy(node, value_of);
      copy.rename(inner);
      if (meta) copy.meta() = *meta;
      values[node] = copy;
    }
    return {};
  }

  Node& attribute(const std::string& path) {
    return result_.create_node(Op::get_attr, path, {}, {}, to_identifier(path));
  }

  static std::vector<Argument> bind(const Node& node, const Graph& body, const Map& value_of) {
    const std::vector<Node*> parameters = body.placeholders();
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorKind::invalid_argument, "%" + node.name() + ": module '" + node.target().str() + "' " + why,
                  node.name());
    };
    if (node.args().size() > parameters.size()) refuse("takes " + std::to_string(parameters.size()) + " arguments");
    std::vector<Argument> inputs;
    std::size_t keywords = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Argument* given = i < node.args().size() ? &node.arg(i) : node.kwarg(parameters[i]->target());
      keywords += i >= node.args().size() && given;
      if (!given && parameters[i]->args().empty()) refuse("needs the argument '" + parameters[i]->target().str() + "'");
      inputs.push_back(given ? map_nodes(*given, value_of) : parameters[i]->arg(0));
    }
    if (keywords != node.kwargs().size()) refuse("has no such keyword argument");
    return inputs;
  }

  const GraphModule& module_;
  const ModuleBodies& others_;
  Graph result_;
};

}  // namespace

std::shared_ptr<const Graph> module_body(const std::shared_ptr<torch::nn::Module>& module) {
  if (const auto* leaf = dynamic_cast<const LeafModule*>(module.get())) return leaf->body_in_mode(leaf->is_training());
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
  std::optional<Graph> body = type->body(*module);
  return body ? std::make_shared<const Graph>(std::move(*body)) : nullptr;
}

Graph inline_modules(const GraphModule& module, const ModuleBodies& others) { return Inliner(module, others).run(); }

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
