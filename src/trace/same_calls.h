// Whether two calls are the same but for the nodes that they take, which have to be the same in the caller's sense.
#pragma once

#include <algorithm>

#include <fxgraph/ir/graph.h>

namespace fx::internal {

/// `same_node(const Node&, const Node&)` is asked from the first on, until it says no.
template <typename SameNode>
bool same_argument(const Argument& a, const Argument& b, const SameNode& same_node) {
  if (a.kind() != b.kind()) return false;
  if (a.is_node()) return same_node(a.node(), b.node());
  if (!a.is_container()) return a == b;
  const ArgumentSpan mine = a.elements(), theirs = b.elements();
  return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                    [&](const Argument& x, const Argument& y) { return same_argument(x, y, same_node); });
}

/// Same operation, same arguments.
template <typename SameNode>
bool same_call(const Node& a, const Node& b, const SameNode& same_node) {
  const KwargSpan named = a.kwargs(), named_too = b.kwargs();
  if (a.op() != b.op() || a.target() != b.target() || a.args().size() != b.args().size() ||
      named.size() != named_too.size())
    return false;
  for (std::size_t i = 0; i < a.args().size(); ++i) {
    if (!same_argument(a.arg(i), b.arg(i), same_node)) return false;
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (named.name(i) != named_too.name(i) || !same_argument(named.value(i), named_too.value(i), same_node))
      return false;
  }
  return true;
}

/// Whether they have as many nodes, each pair of which is the same in the caller's sense.
template <typename SameNode>
bool same_nodes(const Graph& a, const Graph& b, const SameNode& same_node) {
  const auto mine = a.nodes(), theirs = b.nodes();
  return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(), same_node);
}

}  // namespace fx::internal
