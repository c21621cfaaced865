
#include <fxgraph/contract/assertions.h>
#include <fxgraph/trace/input_assertions.h>

namespace fx::internal {

Node& last_placeholder(Node& node) {
  Node* last = &node;
  while (last->is(Op::placeholder) && last->next() && last->next()->is(Op::placeholder)) last = last->next();
  return *last;
}

std::pair<Node*, std::string> path_of(Node& part) {
  std::string path;
  Node* node = &part;
  for (; !node->is(Op::placeholder); node = &node->arg(0).node()) path = "[" + to_string(node->arg(1)) + "]" + path;
  return {node, path};
}

void assert_given(Graph& graph, Node& part) {
  const auto [input, path] = path_of(part);
  // Where types say that it is given nobody asks.
  if (input == &part) part.meta().set(meta_key::kType, std::string("typing.Optional[torch.Tensor]"));
  const auto at = graph.inserting_after(last_placeholder(part));
  AssertionWriter(graph).add(SizeRelation::unequal, part, {},
                             input->name() + path + " was given in the example and must not be None");
}

void assert_of_input(Graph& graph, const BoundTensor& input, Symbol question, const Argument& answer,
                     const std::string& message, const std::vector<Argument>& order) {
  static const Symbol kPermute("aten::permute");
  if (input.node->is_erased()) return;
  const auto at = graph.inserting_after(last_placeholder(*input.node));
  Argument of(*input.node);
  if (!order.empty()) of = Argument(graph.call_function(kPermute, {of, Argument::list(order)}));
  AssertionWriter(graph).add(SizeRelation::equal, graph.call_function(question, {of}), answer, message);
}

}  // namespace fx::internal
