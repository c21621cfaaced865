// Python's spellings of operators made into the operators themselves.
#include <algorithm>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx {

bool spell_as_operator(Node& node) {
  if (internal::is_spelt_as_operator(node)) return false;
  const bool same_arguments = node.is(Op::call_function) && !internal::target_info(node.target()).overloads->empty();
  const Call call = call_of(node);
  if (!call || (same_arguments && call.schema().target == node.target())) return false;
  // Setting arguments makes the node the last user of its inputs, so only when they differ.
  if (!same_arguments &&
      (!std::ranges::equal(node.args(), call.args()) || node.kwargs().to_vector() != call.kwargs().to_vector())) {
    node.set_args_kwargs(call.args().to_vector(), call.kwargs().to_vector());  // they may be the node's own
  }
  node.set_target(Op::call_function, call.schema().target);
  return true;
}

// In order: what a node computes with is then known from the overloads that its inputs have been given.
std::size_t normalize_operators(Graph& graph) {
  std::size_t changed = 0;
  for (Node& node : graph.nodes()) changed += spell_as_operator(node);
  return changed;
}

}  // namespace fx
