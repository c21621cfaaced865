#include <fxgraph/codegen/releases.h>

#include <fxgraph/ops/call.h>

namespace fx {

// Backwards, so that the first user met is the last.
Releases::Releases(const Graph& graph, bool of_operators) : released_(graph) {
  NodeMap<bool> used(graph, false);
  for (const Node& node : graph.nodes().reversed()) {
    const auto use = [&](const Node& input) {
      if (used[input]) return;
      used[input] = true;
      released_[node].push_back(&input);
    };
    const Call call = of_operators ? call_of(node) : Call();
    for (const Argument& argument : call ? call.args() : node.args()) for_each_node(argument, use);
    for (const Argument& argument : (call ? call.kwargs() : node.kwargs()).values()) for_each_node(argument, use);
    if (!node.has_users()) released_[node].push_back(&node);
  }
}

}  // namespace fx
