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

void flatten(const c10::IValue& value, std::vector<Tensor>& tensors) {
  if (value.isTensor()) return tensors.push_back(value.toTensor());
  for (const c10::IValue& element : value.toTupleRef().elements()) flatten(element, tensors);
}

Argument packed(const Argument& pattern, ArgumentSpan values) {
  if (pattern.is_int()) return values[static_cast<std::size_t>(pattern.as_int())];
  std::vector<Argument> elements;
  for (const Argument& element : pattern.elements()) elements.push_back(packed(element, values));
  return Argument::tuple(elements);
}

// The trace gives a list; the body gives what the call gave.
Graph repacked(const Graph& traced, const Argument& result) {
  Graph body;
  NodeMap<Argument> values(traced);
  const auto mapped = [&](Node& node) { return values[node]; };
  for (const Node& node : traced.nodes()) {
    if (node.is(Op::output)) {
      const Argument all = map_nodes(node.arg(0), mapped);
      body.output(packed(result, all.elements()));
    } else {
      values[node] = Argument(body.node_copy(node, mapped));
    }
  }
  return body;
}

struct Example {
  std::vector<std::int64_t> sizes;
  at::ScalarType type;
};

}  // namespace

GenericBody generic_body(const std::shared_ptr<torch::nn::Module>& leaf, const ModuleType& type, const Node& call,
                         const Argument& result, const Session& session) {
  const std::vector<Node*> nodes = call.all_input_nodes();
  std::vector<Example> examples;
  for (const Node* node : nodes) {
    const Tensor value = session.value_of(*node);
    if (!value.defined()) return {};
    examples.push_back({value.sizes().vec(), value.scalar_type()});
  }
  std::vector<Argument> inputs;
  for (const Argument& input : call.args()) {
    if (!is_of_nodes(input)) return {};
    inputs.push_back(numbered(input, nodes));
  }
  if (!is_of_nodes(result) || !call.kwargs().empty()) return {};
  std::int64_t next = 0;
  const Argument wanted = map_nodes(result, [&](Node&) { return Argument(next++); });
  const auto run = [leaf, forward = type.call, inputs](const std::vector<Tensor>& tensors) {
    torch::jit::Stack stack;
    for (const Argument& input : inputs) stack.push_back(packed(input, tensors));
    forward(*leaf, stack);
    std::vector<Tensor> flat;
    flatten(stack.back(), flat);
    return flat;
  };
  return [leaf, run, examples, wanted]() -> std::shared_ptr<const Graph> {
    std::vector<c10::IValue> tensors;
    for (const Example& each : examples) tensors.emplace_back(at::zeros(each.sizes, each.type));
    const auto call = [&](Inputs& inputs) {
      std::vector<Tensor> bound;
      while (bound.size() < examples.size()) bound.push_back(inputs.bind<Tensor>());
      return value_to_argument(inputs.session(), run(bound));
    };
    try {
      Tracer tracer({.raise_leaf_modules = false, .second_call = false, .follow_mode = false});
      const Trace trace = tracer.trace(Callable{leaf, std::vector<Parameter>(examples.size()), call}, tensors);
      return std::make_shared<const Graph>(repacked(trace.graph, wanted));
    } catch (const std::exception&) {
      return nullptr;
    }
  };
}

}  // namespace fx::internal
