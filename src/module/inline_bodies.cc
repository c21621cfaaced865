#include <fxgraph/module/inline_bodies.h>

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/traced_body.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/text/print.h>

namespace fx::internal {
namespace {

const TracedBody* body_to_inline(const GraphModule& module, const Node& node) {
  if (!node.is(Op::call_module) || !node.find_meta()) return nullptr;
  const TracedBody* body = node.find_meta()->get<TracedBody>(meta_key::kTracedBody);
  if (!body) return nullptr;
  const auto leaf = module.find_submodule(node.target().str());
  if (!leaf || dynamic_cast<const LeafModule*>(leaf.get()) || dynamic_cast<const GraphModule*>(leaf.get()))
    return nullptr;  // another module has taken its place
  return leaf_from_module(*leaf) ? nullptr : body;
}

class Inliner {
 public:
  explicit Inliner(const GraphModule& module) : module_(module), values_(module.graph()) {}

  Graph run() {
    const auto mapped = [this](Node& node) { return values_[node]; };
    for (const Node& node : module_.graph().nodes()) {
      if (node.is(Op::output)) {
        result_.output(map_nodes(node.arg(0), mapped));
      } else if (const TracedBody* body = body_to_inline(module_, node)) {
        values_[node] = inlined(node, *body);
      } else if (std::optional<Argument> element = element_of_result(node)) {
        values_[node] = std::move(*element);
      } else {
        values_[node] = Argument(result_.node_copy(node, mapped));
      }
    }
    return std::move(result_);
  }

 private:
  // A body's result is its parts: nobody is left who packs them.
  std::optional<Argument> element_of_result(const Node& node) {
    const std::optional<Element> taken = taken_element(node);
    return taken ? element_of(values_[*taken->of], taken->index) : std::nullopt;
  }

  [[noreturn]] static void refuse(const Node& node, const std::string& why) {
    throw Error(ErrorKind::unsupported, "cannot write " + format_node(node) + " as operators: " + why + "; trace again",
                node.name());
  }

  Argument inlined(const Node& call, const TracedBody& body) {
    const std::string path = call.target().str();
    if (module_.submodule(path)->is_training() != body.training) {
      refuse(call, "the module was traced in another mode than it is in now (training or evaluating)");
    }
    const std::shared_ptr<const Graph> at_any_size = body.at_any_size ? body.at_any_size() : nullptr;
    const Graph& graph = at_any_size ? *at_any_size : *body.graph;
    const std::vector<Node*> inputs = call.all_input_nodes();
    if (inputs.size() != graph.placeholders().size()) {
      refuse(call, "it was traced on other inputs than it has now");
    }
    NodeMap<Argument> inner(graph);
    const auto mapped = [&](Node& node) { return inner[node]; };
    std::size_t next_input = 0;
    for (const Node& node : graph.nodes()) {
      switch (node.op()) {
        case Op::placeholder: inner[node] = values_[*inputs[next_input++]]; break;
        case Op::get_attr: inner[node] = Argument(result_.get_attr(join_path(path, node.target().str()))); break;
        case Op::output: return map_nodes(node.arg(0), mapped);
        default: inner[node] = Argument(result_.node_copy(node, mapped));
      }
    }
    return {};
  }

  const GraphModule& module_;
  NodeMap<Argument> values_;
  Graph result_;
};

}  // namespace

std::optional<Graph> inline_traced_bodies(const GraphModule& module) {
  for (const Node& node : module.graph().nodes()) {
    if (body_to_inline(module, node)) return Inliner(module).run();
  }
  return std::nullopt;
}

}  // namespace fx::internal
