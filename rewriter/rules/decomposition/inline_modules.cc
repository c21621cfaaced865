#include "rewriter/rules/decomposition/inline_modules.h"

#include "ir/node_map.h"

namespace fx::rules {

namespace {

/// The arguments of `call` by the positions of the body's inputs; empty where one is missing and has no default.
std::vector<Argument> bound_inputs(const Node& call, const std::vector<Node*>& inputs) {
  std::vector<Argument> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i < call.args().size()) {
      values.push_back(call.args()[i]);
    } else if (const Argument* named = call.kwarg(inputs[i]->target())) {
      values.push_back(*named);
    } else if (!inputs[i]->args().empty()) {
      values.push_back(inputs[i]->args()[0]);
    } else {
      return {};
    }
  }
  return values;
}

bool inline_call(GraphModule& module, Node& call, const LeafModule& leaf) {
  Graph& graph = module.graph();
  const std::vector<Node*> inputs = leaf.body()->placeholders();
  const std::vector<Argument> values = bound_inputs(call, inputs);
  if (values.size() != inputs.size() || !leaf.body()->output_node()) return false;
  NodeMap<Argument> copies(*leaf.body());
  for (std::size_t i = 0; i < inputs.size(); ++i) copies[*inputs[i]] = values[i];
  const auto scope = graph.inserting_before(call);
  const auto value_of = [&](const Node& node) -> const Argument& { return std::as_const(copies)[node]; };
  for (const Node& node : leaf.body()->nodes()) {
    if (node.is(Op::placeholder)) continue;
    const auto map = [&](Node& input) { return value_of(input); };
    if (node.is(Op::output)) {
      call.replace_all_uses_with(map_nodes(node.arg(0), map));
      break;
    }
    Node& copy = graph.node_copy(node, map);
    if (copy.is(Op::get_attr) || copy.is(Op::call_module))
      copy.set_target(call.target().str() + "." + node.target().str());
    copies[node] = copy;
  }
  graph.erase_node(call);
  return true;
}

Outcome inline_modules(Program& program) {
  Outcome outcome;
  for (Node& node : program.module.graph().nodes()) {
    if (!node.is(Op::call_module)) continue;
    const auto leaf = program.module.leaf(node.target().str());
    if (!leaf || !leaf->body()) {
      outcome.refused.push_back({{}, node.name(), "what its module computes is not known as operators"});
    } else if (inline_call(program.module, node, *leaf)) {
      ++outcome.applied;
    }
  }
  return outcome;
}

}  // namespace

const ProgramRule kInlineModules = {
    .name = "inline-modules",
    .summary = "Called modules become the operators that they are made of, so that the rules on operators see them",
    .preconditions = "what the module computes is known; the mode that it is in, training or evaluation, becomes fixed",
    .group = Group::decomposition,
    .inference = false,
    .promise = Promise::bit_exact,
    .pass = inline_modules,
};

}  // namespace fx::rules
