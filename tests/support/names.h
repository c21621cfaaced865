// Nodes as names, so that a failed expectation reads well.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx::testing {

template <typename Range>
std::vector<std::string> names(const Range& nodes) {
  std::vector<std::string> found;
  for (const auto& node : nodes) {
    if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(node)>>) {
      found.push_back(node->name());
    } else {
      found.push_back(node.name());
    }
  }
  return found;
}

inline std::vector<std::string> order(const Graph& graph) { return names(graph.nodes()); }
inline std::vector<std::string> users(const Node& node) { return names(node.users()); }

/// The graph's table as text: equal tables mean equal names, order, targets and arguments.
std::string table(const Graph& graph);

}  // namespace fx::testing
