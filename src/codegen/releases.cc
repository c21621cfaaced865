#include <fxgraph/codegen/releases.h>

namespace fx {

// Backwards, so that the first user met is the last.
Releases::Releases(const Graph& graph) : released_(graph) {
  NodeMap<bool> used(graph, false);
  for (const Node& node : graph.nodes().reversed()) {
    node.for_each_input([&](const Node& input) {
      if (used[input]) return;
      used[input] = true;
      released_[node].push_back(&input);
    });
    if (!node.has_users()) released_[node].push_back(&node);
  }
}

}  // namespace fx
