// PatternSet: many patterns, looked for together in one sweep.
//
// Patterns are indexed by the operator they start at, the rarest one in the graph, and by what that operator's operands
// must be, so that the cost follows the nodes that may start a match: a node that starts nothing costs one look-up
// however many patterns there are, and patterns whose operators are not all in the graph cost nothing.
//
// Thread-safety: find() is const and may run on several threads at once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fxgraph/matchers/matcher.h>

namespace fx {

/// A match of one pattern of a set.
struct SetMatch {
  std::size_t pattern = 0;  ///< its position in the set
  Match match;              ///< of that pattern
};

/// Patterns that are looked for together; see the top of this file.
class PatternSet {
 public:
  PatternSet() = default;
  /// A pattern's position is that in the vector.
  PatternSet(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}

  /// Adds a pattern; returns its position. Of patterns that fit at one place the one added first wins.
  std::size_t add(Pattern pattern) {
    patterns_.push_back(std::move(pattern));
    return patterns_.size() - 1;
  }
  std::size_t size() const { return patterns_.size(); }  ///< the number of patterns
  /// The pattern at position `i`, which is less than size().
  const Pattern& operator[](std::size_t i) const { return patterns_[i]; }

  /// All matches of all patterns, in graph order. A module that one of them names is a module for all; Overlap applies
  /// across patterns. FindOptions::stats sums over them.
  std::vector<SetMatch> find(const Graph& graph, const FindOptions& options = {}) const;

 private:
  std::vector<Pattern> patterns_;
};

}  // namespace fx
