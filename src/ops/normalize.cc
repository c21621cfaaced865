// Python's spellings of operators made into the operators themselves.
#include <algorithm>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx {

namespace {

// True for a call that is spelt in full already.
bool is_normal(const Node& node) {
  if (node.is(Op::call_method)) return false;
  if (!node.is(Op::call_function)) return true;
  return internal::target_info(node.target()).exact;
}

// In order: what a node computes with is then known from the overloads that its inputs have been given.
bool normalize(Node& node) {
  if (is_normal(node)) return false;
  const bool same_arguments = node.is(Op::call_function) && !internal::target_info(node.target()).overloads->empty();
  const Call call = call_of(node);
  if (!call || (same_arguments && call.schema().target == node.target())) return false;
  // Setting arguments makes the node the last user of its inputs, so only when they differ.
  if (call.is_translated() &&
      (!std::ranges::equal(node.args(), call.args()) || node.kwargs().to_vector() != call.kwargs().to_vector())) {
    node.set_args_kwargs(call.args(), call.kwargs());
  }
  node.set_target(Op::call_function, call.schema().target);
  return true;
}

}  // namespace

std::size_t normalize_operators(Graph& graph) {
  std::size_t changed = 0;
  for (Node& node : graph.nodes()) changed += normalize(node);
  return changed;
}

}  // namespace fx
