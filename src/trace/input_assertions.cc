#include <fxgraph/trace/input_assertions.h>

namespace fx::internal {

void assert_of_input(Graph& graph, const BoundTensor& input, Symbol question, const Argument& answer,
                     const std::string& message) {
  static const Symbol kEqual("operator.eq"), kAssert("torch._assert");
  if (input.node->is_erased()) return;
  Node* last = input.node;
  while (last->is(Op::placeholder) && last->next() && last->next()->is(Op::placeholder)) last = last->next();
  const auto at = graph.inserting_after(*last);
  Node* holds = &graph.call_function(question, {Argument(*input.node)});
  if (!answer.is_none()) holds = &graph.call_function(kEqual, {Argument(*holds), answer});
  graph.call_function(kAssert, {Argument(*holds), Argument(message)});
}

}  // namespace fx::internal
