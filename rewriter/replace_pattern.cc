#include <fxgraph/rewriter/replace_pattern.h>

#include <algorithm>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/search.h>
#include <fxgraph/rewriter/applier.h>

namespace fx {

namespace {

using internal::Applier;
using internal::ApplyResult;
using internal::Objection;
using internal::ReplacementPlan;
using internal::Search;
using internal::TrackedEffects;

/// One call of replace_pattern.
class Replace {
 public:
  Replace(Rewriter& rewriter, const Pattern& pattern, const Replacement& replacement, const ReplaceOptions& options)
      : rewriter_(rewriter),
        pattern_(pattern),
        plan_(internal::PatternAccess::of(pattern), replacement, options.find.commutative),
        options_(options) {
    rule_.rule = options.name;
  }

  /// Called with each match that was rewritten, as it was found, and the nodes made for it.
  std::function<void(const Match&, const std::vector<Node*>&)> on_applied;

  RewriteReport run() {
    const auto start = std::chrono::steady_clock::now();
    search();
    filter();
    const Rewriter::Mark mark = rewriter_.mark();
    try {
      if (num_matches() > 0) rewrite();
    } catch (...) {
      rewriter_.rollback(mark);
      throw;
    }
    if (options_.dry_run) rewriter_.rollback(mark);
    rule_.time = std::chrono::steady_clock::now() - start;
    report_.applied = rule_.applied;
    report_.rules.push_back(std::move(rule_));
    return std::move(report_);
  }

 private:
  std::size_t num_matches() const { return pool_.size() + matches_.size(); }
  Match& match_at(std::size_t i) {
    if (!matches_.empty()) return matches_[i];
    pool_.read(i, scratch_);
    return scratch_;
  }

  void search() {
    FindOptions find = options_.find;
    find.contained = true;
    if (options_.shapes) find.shapes = options_.shapes;
    std::vector<bool> claimed;
    Search search(pattern_, internal::PresentCalls(rewriter_.graph()), find, claimed);
    search.want_escapes = true;
    // Found in the order of their results already: they need not be sorted, and may lie flat.
    if (!options_.guard && find.overlap == Overlap::first &&
        search.plan().anchor == internal::PatternAccess::of(pattern_).anchor)
      search.pool = &pool_;
    search.try_all();
    if (find.stats) *find.stats = search.stats();
    internal::apply_overlap(search.matches, find, rewriter_.graph());
    matches_ = std::move(search.matches);
    if (options_.guard) std::ranges::for_each(matches_, internal::MatchBuilder::take_notes);
    rule_.tried = search.stats().candidates;
    rule_.matched = num_matches() + search.escapes.size();
    if (search.stats().stop == SearchStop::budget) report_.stop = RewriteStop::search_budget;
    for (const internal::Escape& escape : search.escapes)
      refuse({escape.value, "its value is also used by " + escape.user->name()});
  }

  void filter() {
    if (options_.filters.empty()) return;
    accepted_.assign(num_matches(), true);
    for (std::size_t i = 0; i < num_matches(); ++i) {
      accepted_[i] = passes_filters(match_at(i));
    }
  }

  bool passes_filters(const Match& match) const {
    return std::all_of(options_.filters.begin(), options_.filters.end(),
                       [&](const MatchFilter& filter) { return filter(match); });
  }

  void rewrite() {
    TrackedEffects effects(rewriter_.graph(), options_.find.modules);
    Applier applier(rewriter_, effects, plan_, options_.name, options_.allow_output_aliases, options_.shapes,
                    options_.guard);
    const std::function<bool(const Match&)> again = [&](const Match& match) { return passes_filters(match); };
    for (std::size_t i = 0; i < num_matches(); ++i) {
      if (!accepted_.empty() && !accepted_[i]) {
        ++rule_.filtered;
        continue;
      }
      if (rule_.applied == options_.max_rewrites) {
        report_.stop = RewriteStop::max_rewrites;
        return;
      }
      Match& match = match_at(i);
      switch (applier.apply(match, again)) {
        case ApplyResult::applied:
          ++rule_.applied;
          if (on_applied) on_applied(match, applier.made());
          break;
        case ApplyResult::refused: refuse(applier.objection()); break;
        case ApplyResult::declined: ++rule_.filtered; break;
      }
    }
  }

  void refuse(const Objection& objection) {
    ++rule_.refused;
    report_.refused.push_back({options_.name, objection.node->name(), objection.reason});
  }

  Rewriter& rewriter_;
  const Pattern& pattern_;
  ReplacementPlan plan_;
  const ReplaceOptions& options_;
  RuleReport rule_;
  RewriteReport report_;
  internal::MatchPool pool_;  // the matches, or else
  std::vector<Match> matches_;
  std::vector<bool> accepted_;  // by filters; empty when there are none
  Match scratch_;
};

}  // namespace

RewriteReport replace_pattern(Rewriter& rewriter, const Pattern& pattern, const Replacement& replacement,
                              const ReplaceOptions& options) {
  return Replace(rewriter, pattern, replacement, options).run();
}

RewriteReport replace_pattern(Graph& graph, const Pattern& pattern, const Replacement& replacement,
                              const ReplaceOptions& options) {
  Rewriter rewriter(graph);
  return replace_pattern(rewriter, pattern, replacement, options);
}

std::vector<ReplacedPattern> replace_pattern_with_filters(Graph& graph, const Pattern& pattern,
                                                          const Replacement& replacement,
                                                          std::vector<MatchFilter> filters,
                                                          const ReplaceOptions& options, RewriteReport* report) {
  ReplaceOptions all = options;
  all.filters.insert(all.filters.end(), filters.begin(), filters.end());
  Rewriter rewriter(graph);
  Replace replace(rewriter, pattern, replacement, all);
  std::vector<ReplacedPattern> replaced;
  replace.on_applied = [&](const Match& match, const std::vector<Node*>& made) {
    ReplacedPattern one{&match.anchor(), {}, made};
    for (const auto& [name, value] : match.bindings()) one.nodes_map.emplace_back(name.str(), value);
    replaced.push_back(std::move(one));
  };
  RewriteReport done = replace.run();
  if (report) *report = std::move(done);
  return replaced;
}

}  // namespace fx
