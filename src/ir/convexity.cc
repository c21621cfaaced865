#include <fxgraph/ir/convexity.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fx {

std::optional<ConvexityViolation> convexity_violation(std::span<Node* const> nodes, std::span<Node* const> exits) {
  // A single exit ends above every other node that it could come back to.
  if (exits.size() < 2) return {};
  const Node* last = nodes.back();
  std::unordered_set<const Node*> seen;                   // membership only
  std::vector<std::pair<const Node*, const Node*>> open;  // a node, and the exit it depends on
  for (const Node* exit : exits) open.emplace_back(exit, exit);
  while (!open.empty()) {
    const auto [node, exit] = open.back();
    open.pop_back();
    for (const Node& user : node->users()) {
      if (last->is_before(user)) continue;
      if (std::find(nodes.begin(), nodes.end(), &user) != nodes.end()) {
        if (node == exit) continue;  // an edge inside the set
        return ConvexityViolation{exit, node, &user};
      }
      if (seen.insert(&user).second) open.emplace_back(&user, exit);
    }
  }
  return {};
}

}  // namespace fx
