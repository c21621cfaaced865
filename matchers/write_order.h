// Whether the calls of a match see their values as the pattern means it. Internal to matchers/.
//
// `x * sigmoid(x)` is no silu where something writes to x in between: its two readers see two values. Thread-safety:
// none.
#pragma once

#include <optional>
#include <span>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/matchers/reading.h>

namespace fx::internal {

class WriteOrder {
 public:
  /// Of matches in what is searched, which must outlive it.
  explicit WriteOrder(const Searched& searched) : searched_(searched) {}

  /// The first call outside that writes to what some of these calls read or made before it, and others read afterwards;
  /// null when there is none. The first question costs a look at the graph's effects, each the calls that lie in
  /// between.
  const Node* write_between(std::span<Node* const> calls);

 private:
  const Searched& searched_;
  std::optional<TrackedEffects> effects_;
};

}  // namespace fx::internal
