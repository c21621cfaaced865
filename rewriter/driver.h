// Drivers: run a set of rules over a graph, once or until nothing applies any more.
//
//   fx::RewriteReport report = fx::rewrite_to_fixed_point(graph, rules);
//
// Both check the rules first (RuleSet::validate) and every rewrite as replace_pattern does. At one place the rule that
// comes first in the set wins. An exception leaves the graph as it was.
//
// rewrite_once finds all matches of all rules in one sweep, then rewrites those that do not overlap.
//
// rewrite_to_fixed_point keeps a worklist of places where a match could start. After a rewrite it visits again only
// what the rewrite may have changed: from the new nodes, their users, and values that lost a use, along the paths by
// which the rules' patterns reach their starting operator. The cost follows the rewrites, not rewrites times nodes.
// Rules with conditions may read more than their match, and what fits `~x`, `dominates(…)` or `k: constant` may depend
// on nodes at any distance: the places where such rules start, and only those, are tried once more when the list runs
// dry, until that changes nothing. Each time costs as much as looking for these rules in the whole graph.
#pragma once

#include <chrono>
#include <cstddef>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/rewriter/fact_guard.h>
#include <fxgraph/rewriter/report.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/rewriter/rule.h>

namespace fx {

/// What counts as a match, what is known beside the graph, and when to stop.
struct DriverOptions {
  FindOptions find{};                 ///< overlap is always first, contained always on
  bool allow_output_aliases = false;  ///< a returned value may become an input or another returned value
  /// What is known of the values, for conditions. A new value gets the type and sizes of the one it replaces, its other
  /// new nodes stay unknown.
  Shapes* shapes = nullptr;
  /// Answers for what rewrites read of `shapes`; null: whoever runs the result sees to it.
  FactGuard* guard = nullptr;
  bool dry_run = false;                  ///< check everything, then undo it
  std::size_t max_rewrites = 0;          ///< 0: a hundred for each node of the graph, and ten thousand
  std::chrono::nanoseconds max_time{0};  ///< 0: no limit
};

/// Rewrites the matches that the graph has now; see the top of this file. With a Rewriter it is part of a larger
/// rewrite, which can be undone.
/// @{
RewriteReport rewrite_once(Graph& graph, const RuleSet& rules, const DriverOptions& options = {});
RewriteReport rewrite_once(Rewriter& rewriter, const RuleSet& rules, const DriverOptions& options = {});
/// @}

/// Rewrites until nothing applies any more or a limit is reached; see the top of this file. With a Rewriter it is part
/// of a larger rewrite, which can be undone.
/// @{
RewriteReport rewrite_to_fixed_point(Graph& graph, const RuleSet& rules, const DriverOptions& options = {});
RewriteReport rewrite_to_fixed_point(Rewriter& rewriter, const RuleSet& rules, const DriverOptions& options = {});
/// @}

}  // namespace fx
