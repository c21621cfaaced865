// What lies above a value: its operands, theirs, and so on, as far as a path goes. Internal to matchers/.
#pragma once

#include <set>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx::internal {

/// Walks up from a value, the latest node first, and stops at each node that dominates it: one that every way up leads
/// to. O(log n) a step; nothing is walked before it is asked for.
class DominatorWalk {
 public:
  /// Begins at `node`, which dominates itself.
  void start(Node& node) {
    frontier_ = {&node};
    passed_.clear();
  }

  /// Goes on to the next node that dominates the value, where `accepts(node)` says what may lie between; null when
  /// there is none. Attributes do not count as operands.
  template <typename Accepts>
  Node* next(Accepts&& accepts) {
    do {
      Node& latest = **frontier_.begin();
      if (!accepts(latest) || !pass(latest)) return nullptr;
    } while (frontier_.size() > 1);
    return *frontier_.begin();
  }

  /// The nodes below the one that next() stopped at, the latest first.
  const std::vector<Node*>& passed() const { return passed_; }

 private:
  struct Later {
    bool operator()(const Node* a, const Node* b) const { return b->is_before(*a); }
  };

  /// Replaces the latest node by its operands; false when it has none, so that a way up ends there.
  bool pass(Node& latest) {
    frontier_.erase(frontier_.begin());
    passed_.push_back(&latest);
    bool any = false;
    latest.for_each_input([&](Node& input) {
      if (input.is(Op::get_attr)) return;
      any = true;
      frontier_.insert(&input);
    });
    return any;
  }

  std::set<Node*, Later> frontier_;
  std::vector<Node*> passed_;
};

}  // namespace fx::internal
