// Where to look again after an edit: from a changed node along the paths by which patterns reach their starting
// operator. Internal to rewriter/.
#pragma once

#include <cstdint>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/compiled_pattern.h>

namespace fx::internal {

/// The paths from any place of any pattern to the pattern's start, as one tree of steps: up to a user, down to an
/// input.
class RevisitPaths {
 public:
  RevisitPaths() : steps_(1) {}

  /// False when the pattern has too many paths to list, or what fits may depend on nodes at any distance, as it does
  /// where its parts hang together by nothing: then all its places are to be tried again.
  bool add(const PatternFacts& facts, const SearchPlan& plan);

  /// The largest number of users that a contained inner value can have.
  std::size_t most_users() const { return most_users_; }

  /// Calls `visit(Node&)` for every node that a path from `node` leads to. O(nodes on the paths).
  template <typename Visit>
  void walk(Node& node, Visit&& visit) const {
    walk_from(0, node, visit);
  }

 private:
  class Walk;
  struct Step {
    std::uint32_t up = 0;  // no step leads to the first
    std::uint32_t down = 0;
    bool arrives = false;
  };

  template <typename Visit>
  void walk_from(std::uint32_t at, Node& node, Visit& visit) const {
    const Step& step = steps_[at];
    if (step.arrives) visit(node);
    if (step.up != 0) {
      for (Node& user : node.users()) walk_from(step.up, user, visit);
    }
    if (step.down != 0) {
      node.for_each_input([&](Node& input) { walk_from(step.down, input, visit); });
    }
  }

  std::vector<Step> steps_;  // the first is where a walk begins; depth is bounded by the patterns'
  std::size_t most_users_ = 1;
};

}  // namespace fx::internal
