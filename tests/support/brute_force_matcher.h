// The slow matcher that is obviously right: every way to bind a pattern, by definition, without index, anchors or
// order.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/matcher.h>

namespace fx::testing {

/// Every match of `pattern` in `graph`, each as a text of what its nodes are bound to. Of the options it knows
/// contained, commutative, ignore_literals and shapes. Exponential: for small graphs and patterns.
std::set<std::string> brute_force_matches(const Graph& graph, const Pattern& pattern, const FindOptions& options = {});

/// A match in the same words, for comparison.
std::string match_text(const Match& match);

}  // namespace fx::testing
