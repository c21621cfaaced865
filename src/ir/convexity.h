// Convexity: a set of nodes is convex when no path leaves it and comes back into it through nodes outside. Then it can
// be replaced by a single call.
//
// Cost: the users of the exits, followed downstream as far as the last node of the set; never the whole graph.
// Thread-safety: reads the graph only.
#pragma once

#include <optional>
#include <span>

#include <fxgraph/ir/graph.h>

namespace fx {

struct ConvexityViolation {
  const Node* exit;     ///< the node of the set whose value leaves
  const Node* through;  ///< the last node outside
  const Node* user;     ///< the node of the set that it comes back to
};

/// Returns a path out of `nodes` and back, from one of `exits`, which are among them; nothing when there is none.
/// `nodes` are in graph order. Only nodes that are used outside need be given as exits.
std::optional<ConvexityViolation> convexity_violation(std::span<Node* const> nodes, std::span<Node* const> exits);

}  // namespace fx
