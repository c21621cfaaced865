// Where to look again after an edit: from a changed node along the paths by which patterns reach their starting
// operator. What a path leads to hangs on the patterns, not on how many use a value that they share. Internal to
// rewriter/.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/compiled_pattern.h>

namespace fx::internal {

/// The paths from any place of any pattern to the pattern's start, as steps: up to a user, down to an input.
class RevisitPaths {
 public:
  RevisitPaths() : steps_(1) {}

  /// Where the walks after one edit have been: paths meet again where values have many users (down to one that sixty
  /// calls read and up again, three times, are a hundred thousand paths to sixty nodes).
  class Visited {
   public:
    /// Begins the walks after another edit.
    void clear() {
      ++edit_;
      left_ = kUnnoted;
    }

   private:
    friend class RevisitPaths;

    // Most walks end before it pays to take notes.
    static constexpr int kUnnoted = 64;

    bool insert(std::uint32_t step, std::size_t num_steps, const Node& node);

    std::uint64_t edit_ = 1;
    int left_ = kUnnoted;
    std::vector<std::uint64_t> notes_;  // by node: the edit that they are of, then a bit for each step
  };

  /// False when the pattern has too many paths to list, or what fits may depend on nodes at any distance, as it does
  /// where its parts hang together by nothing: then all its places are to be tried again.
  bool add(const PatternFacts& facts, const SearchPlan& plan);

  /// Makes one of steps from which the same paths go on. After the last pattern.
  void merge();

  /// The largest number of users that a contained inner value can have.
  std::size_t most_users() const { return most_users_; }

  /// Calls `visit(Node&)` for every node that a path from `node` leads to, where `visited` does not say that another
  /// walk did, and now and then twice. O(steps · nodes on the paths).
  template <typename Visit>
  void walk(Node& node, Visited& visited, Visit&& visit) const {
    walk_from(0, node, visited, visit);
  }

 private:
  class Walk;
  /// A node of a pattern, and the way from there to the anchor.
  struct Place {
    std::uint32_t index;
    std::string back;
    bool is_from_above;
  };
  struct Step {
    std::uint32_t up = 0;        // no step leads to the first
    std::uint32_t up_inner = 0;  // from an inner value: where more use it, it is none
    std::uint32_t down = 0;
    bool arrives = false;
    auto operator<=>(const Step&) const = default;
  };

  template <typename Visit>
  void walk_from(std::uint32_t at, Node& node, Visited& visited, Visit& visit) const {
    if (--visited.left_ < 0 && !visited.insert(at, steps_.size(), node)) return;
    const Step& step = steps_[at];
    if (step.arrives) visit(node);
    const auto climb = [&](std::uint32_t to) {
      for (Node& user : node.users()) walk_from(to, user, visited, visit);
    };
    if (step.up != 0) climb(step.up);
    if (step.up_inner != 0 && node.num_users() <= most_users_) climb(step.up_inner);
    if (step.down != 0) {
      node.for_each_input([&](Node& input) { walk_from(step.down, input, visited, visit); });
    }
  }

  std::vector<Step> steps_;  // the first is where a walk begins; depth is bounded by the patterns'
  std::size_t most_users_ = 1;
};

}  // namespace fx::internal
