#include <fxgraph/effects/inlining.h>

#include <algorithm>
#include <optional>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

class Inliner {
 public:
  Inliner(const Graph& graph, const CalledBody& body) : from_(graph), body_(body) {
    made_.values = NodeMap<Argument>(graph);
  }

  Inlined run() {
    NodeMap<Argument>& values = made_.values;
    for (const Node& node : from_.nodes()) {
      source_ = &node;
      const auto value_of = [&](Node& input) { return values[input]; };
      if (node.is(Op::call_module)) {
        values[node] = call(node, "", node.name(), value_of);
      } else if (std::optional<Argument> element = element_of_result(node, values)) {
        values[node] = std::move(*element);
      } else {
        values[node] = made(made_.graph.node_copy(node, value_of));
      }
    }
    return std::move(made_);
  }

 private:
  using Map = std::function<Argument(Node&)>;

  Node& made(Node& node) {
    made_.sources[node] = source_;
    return node;
  }

  // A body's result is its parts: nobody is left who packs them.
  static std::optional<Argument> element_of_result(const Node& node, const NodeMap<Argument>& values) {
    const std::optional<Element> taken = taken_element(node);
    return taken ? element_of(values[*taken->of], taken->index) : std::nullopt;
  }

  /// Writes out the module that `node` calls, found below `prefix`; the value is named `name` where it is one node.
  Argument call(const Node& node, const std::string& prefix, const std::string& name, const Map& value_of) {
    const std::string path = prefix.empty() ? node.target().str() : prefix + "." + node.target().str();
    const std::shared_ptr<const Graph> body = body_(node, path);
    if (!body) {
      Node& copy = made(made_.graph.node_copy(node, value_of));
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
        case Op::get_attr: values[node] = attribute(path + "." + node.target().str()); continue;
        default: break;
      }
      if (std::optional<Argument> element = element_of_result(node, values)) {
        values[node] = std::move(*element);
        continue;
      }
      Node& copy = made(made_.graph.node_copy(node, value_of));
      copy.rename(inner);
      if (meta) copy.meta() = *meta;
      values[node] = copy;
    }
    return {};
  }

  Node& attribute(const std::string& path) {
    return made(made_.graph.create_node(Op::get_attr, path, {}, {}, to_identifier(path)));
  }

  static std::vector<Argument> bind(const Node& node, const Graph& body, const Map& value_of) {
    if (const std::string why = why_misfit(node, body); !why.empty()) {
      throw Error(ErrorKind::invalid_argument, "%" + node.name() + ": module '" + node.target().str() + "' " + why,
                  node.name());
    }
    const std::vector<Node*> parameters = body.placeholders();
    std::vector<Argument> inputs;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Argument* given = i < node.args().size() ? &node.arg(i) : node.kwarg(parameters[i]->target());
      inputs.push_back(given ? map_nodes(*given, value_of) : parameters[i]->arg(0));
    }
    return inputs;
  }

  const Graph& from_;
  const CalledBody& body_;
  Inlined made_;
  const Node* source_ = nullptr;
};

}  // namespace

std::string why_misfit(const Node& call, const Graph& body) {
  const std::vector<Node*> parameters = body.placeholders();
  if (call.args().size() > parameters.size()) return "takes " + std::to_string(parameters.size()) + " arguments";
  std::size_t keywords = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool named = i >= call.args().size() && call.kwarg(parameters[i]->target());
    keywords += named;
    if (i >= call.args().size() && !named && parameters[i]->args().empty())
      return "needs the argument '" + parameters[i]->target().str() + "'";
  }
  return keywords == call.kwargs().size() ? "" : "has no such keyword argument";
}

Inlined inline_calls(const Graph& graph, const CalledBody& body) { return Inliner(graph, body).run(); }

namespace {

bool may_change_a_rank(const Node& node) {
  const NodeEffects effects = effects_of(node);
  return node.is(Op::call_module) || effects.restructures || effects.unknown;
}

/// What goes into a layer that gives as many dimensions as it takes; null for other calls.
Node* input_of_same_rank(const ModuleInfo& modules, const Node& layer) {
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
    const std::optional<TensorInfo> tensor = modules.tensor ? modules.tensor(weight->target().view()) : std::nullopt;
    if (!tensor || tensor->sizes.size() != 2) return nullptr;
  } else if (!packet.starts_with("aten::conv") && packet != "aten::batch_norm") {
    return nullptr;
  }
  return node_of("input");
}

}  // namespace

void ask_inputs_for_ranks(Graph& graph, const ModuleInfo& modules) {
  if (std::ranges::any_of(graph.nodes(), may_change_a_rank)) return;
  for (Node& node : graph.nodes()) {
    const Call call = call_of(node);
    const Argument* first = call && packet_of(call.schema().target.view()) == "aten::dim" ? call.argument(0) : nullptr;
    Node* asked = first ? first->node_or_null() : nullptr;
    while (Node* before = asked ? input_of_same_rank(modules, *asked) : nullptr) {
      node.replace_input_with(*asked, *before);
      asked = before;
    }
  }
}

}  // namespace fx
