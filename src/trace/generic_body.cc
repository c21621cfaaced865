#include <fxgraph/trace/generic_body.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include <fxgraph/trace/tracer.h>

namespace fx::internal {
namespace {

using torch::Tensor;

// `argument` with the number of each node in `nodes` for the node.
Argument numbered(const Argument& argument, const std::vector<Node*>& nodes) {
  return map_nodes(argument, [&](Node& node) -> Argument { return std::ranges::find(nodes, &node) - nodes.begin(); });
}

bool is_of_nodes(const Argument& argument) {
  if (argument.node_or_null()) return true;
  return argument.is_tuple() && std::ranges::all_of(argument.elements(), is_of_nodes);
}

c10::IValue packed(const Argument& pattern, const std::vector<Tensor>& tensors) {
  if (pattern.is_int()) return tensors.at(static_cast<std::size_t>(pattern.as_int()));
  std::vector<c10::IValue> elements;
  for (const Argument& element : pattern.elements()) elements.push_back(packed(element, tensors));
  return c10::ivalue::Tuple::create(std::move(elements));
}

struct Example {
  std::vector<std::int64_t> sizes;
  at::ScalarType type;
};

}  // namespace

GenericBody generic_body(const std::shared_ptr<torch::nn::Module>& leaf, const ModuleType& type, const Node& call,
                         const Session& session) {
  const std::vector<Node*> nodes = call.all_input_nodes();
  std::vector<Example> examples;
  for (const Node* node : nodes) {
    const Tensor value = session.value_of(*node);
    if (!value.defined()) return {};
    examples.push_back({value.sizes().vec(), value.scalar_type()});
  }
  std::vector<Argument> arguments;
  for (const Argument& input : call.args()) {
    if (!is_of_nodes(input)) return {};
    arguments.push_back(numbered(input, nodes));
  }
  if (!call.kwargs().empty()) return {};
  return [leaf, forward = type.call, arguments, examples]() -> std::shared_ptr<const Graph> {
    std::vector<c10::IValue> tensors;
    for (const Example& each : examples) tensors.emplace_back(at::zeros(each.sizes, each.type));
    const auto run = [&](Inputs& inputs) {
      std::vector<Tensor> bound;
      while (bound.size() < examples.size()) bound.push_back(inputs.bind<Tensor>());
      torch::jit::Stack stack;
      for (const Argument& argument : arguments) stack.push_back(packed(argument, bound));
      forward(*leaf, stack);
      return ivalue_to_argument(inputs.session(), stack.back());
    };
    try {
      Tracer tracer({.raise_leaf_modules = false, .second_call = false, .follow_mode = false});
      Trace trace = tracer.trace(Callable{leaf, std::vector<Parameter>(examples.size()), run}, tensors);
      return std::make_shared<const Graph>(std::move(trace.graph));
    } catch (const std::exception&) {
      return nullptr;
    }
  };
}

}  // namespace fx::internal
