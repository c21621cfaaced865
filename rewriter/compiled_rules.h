// A set of rules, prepared: patterns compiled, replacements checked, an index of where they start, the ways back from
// what an edit touches. Internal to rewriter/ and what runs the same rules on many graphs.
//
// Cost: O(patterns), some hundred microseconds for a large set. Nothing of it depends on
// the graph, so that it may be made once and used for all (depends_on_graph). Thread-safety: const functions may run on
// several threads.
#pragma once

#include <memory>
#include <vector>

#include <fxgraph/matchers/anchor_index.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/replacement_plan.h>
#include <fxgraph/rewriter/revisit.h>
#include <fxgraph/rewriter/rule.h>

namespace fx::internal {

class CompiledRules {
 public:
  /// Validates the rules, and copies them. Of `find` only what changes patterns counts: commutative. Throws
  /// Error(invalid_argument) for rules that cannot be run.
  CompiledRules(const RuleSet& rules, const FindOptions& find, const Graph& graph);

  std::size_t size() const { return entries_.size(); }
  const RuleSet& rules() const { return rules_; }
  const Rule& rule(std::size_t i) const { return rules_[i]; }
  const std::shared_ptr<const PatternFacts>& facts(std::size_t i) const { return entries_[i].facts; }
  const SearchPlan& plan(std::size_t i) const { return entries_[i].plan; }
  const ReplacementPlan& replacement(std::size_t i) const { return entries_[i].replacement; }
  /// Where the rules start.
  const AnchorIndex& index() const { return index_; }
  /// Back from what an edit touches to where rules start.
  const RevisitPaths& paths() const { return paths_; }
  /// Where those rules start to which the paths do not lead back; none of them: null.
  const AnchorIndex* far() const { return any_far_ ? &far_ : nullptr; }

 private:
  struct Entry {
    std::shared_ptr<const PatternFacts> facts;
    SearchPlan plan;
    ReplacementPlan replacement;
  };

  RuleSet rules_;
  std::vector<Entry> entries_;
  AnchorIndex index_, far_;
  RevisitPaths paths_;
  bool any_far_ = false;
};

/// rewrite_to_fixed_point for rules that were prepared with `options.find`.
RewriteReport rewrite_to_fixed_point(Rewriter& rewriter, const CompiledRules& rules, const DriverOptions& options = {});

}  // namespace fx::internal
