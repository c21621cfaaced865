
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/trace/cleanup.h>

namespace fx::internal {

void erase_unused_getitems(Graph& graph, const std::unordered_set<const Node*>& kept) {
  for (Node& node : graph.nodes().reversed()) {
    if (node.is(Op::call_function) && node.target() == python::kGetItem && !node.has_users() && !kept.contains(&node))
      graph.erase_node(node);
  }
}

void erase_unused_attributes(Graph& graph) {
  for (Node& node : graph.nodes()) {
    if (node.is(Op::get_attr) && !node.has_users()) graph.erase_node(node);
  }
}

}  // namespace fx::internal
