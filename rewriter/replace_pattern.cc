#include <fxgraph/rewriter/replace_pattern.h>

#include <algorithm>
#include <memory>
#include <optional>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/search.h>
#include <fxgraph/rewriter/applier.h>
#include <fxgraph/rewriter/write_out.h>

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
    reading_ = internal::Reading::of(rewriter_.graph(), {&pattern_, 1}, find);
    const Graph& searched = reading_ ? reading_->graph() : rewriter_.graph();
    Search search(pattern_, internal::PresentCalls(searched), reading_ ? reading_->options() : find, claimed);
    if (reading_) search.see_forms(reading_->forms(), /*results=*/true);
    search.want_escapes = true;
    // Found in the order of their results already: they need not be sorted, and may lie flat.
    if (!options_.guard && !reading_ && find.overlap == Overlap::first &&
        search.plan().anchor == internal::PatternAccess::of(pattern_).anchor)
      search.pool = &pool_;
    search.try_all();
    if (find.stats) *find.stats = search.stats();
    internal::apply_overlap(search.matches, find, searched);
    matches_ = std::move(search.matches);
    if (options_.guard && !reading_) std::ranges::for_each(matches_, internal::MatchBuilder::take_notes);
    rule_.tried = search.stats().candidates;
    rule_.matched = num_matches() + search.escapes.size();
    if (search.stats().stop == SearchStop::budget) report_.stop = RewriteStop::search_budget;
    for (const internal::Escape& escape : search.escapes)
      refuse({escape.value, "its value is also used by " + escape.user->name()});
  }

  void filter() {
    if (options_.filters.empty() || reading_) return;
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
    std::optional<internal::WriteOut> written;
    if (reading_) written.emplace(rewriter_, effects, reading_, Symbol(options_.name), options_.shapes, options_.guard);
    for (std::size_t i = 0; i < num_matches(); ++i) {
      if (!accepted_.empty() && !accepted_[i]) {
        ++rule_.filtered;
        continue;
      }
      if (rule_.applied == options_.max_rewrites) {
        report_.stop = RewriteStop::max_rewrites;
        return;
      }
      std::optional<Match> as_written = written ? write_out(*written, match_at(i)) : std::nullopt;
      if (written && !as_written) continue;
      Match& match = as_written ? *as_written : match_at(i);
      const ApplyResult result = applier.apply(match, again);
      switch (result) {
        case ApplyResult::applied:
          ++rule_.applied;
          if (written) report_.add_written_out(written->sources());
          if (on_applied) on_applied(match, applier.made());
          break;
        case ApplyResult::refused: refuse(applier.objection()); break;
        case ApplyResult::declined: ++rule_.filtered; break;
      }
      if (written && result != ApplyResult::applied) written->undo();
    }
  }

  /// The match of the reading in the program, which has its calls now; nothing where it is not to be rewritten.
  std::optional<Match> write_out(internal::WriteOut& written, const Match& read) {
    if (std::optional<Refusal> refusal = written.make(read)) {
      ++rule_.refused;
      report_.refused.push_back(*std::move(refusal));
      return std::nullopt;
    }
    FindOptions find = options_.find;
    find.contained = true;
    find.stats = nullptr;
    if (options_.shapes) find.shapes = options_.shapes;
    const Node* anchor = written.in_program(read.anchor());
    std::optional<Match> match = anchor ? NodeMatcher(rewriter_.graph(), pattern_, find).match(*anchor) : std::nullopt;
    if (!match) {
      written.undo();
      const Node& at = reading_->source(read.anchor());
      refuse({&at, "an earlier rewrite changed what it was found in"});
      return std::nullopt;
    }
    if (options_.guard) internal::MatchBuilder::take_notes(*match);
    if (passes_filters(*match)) {
      internal::MatchBuilder::add_notes(*match, written.asked());
      return match;
    }
    ++rule_.filtered;
    written.undo();
    return std::nullopt;
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
  std::shared_ptr<const internal::Reading> reading_;  // in which the matches are; null: in the program
  std::vector<bool> accepted_;                        // by filters; empty when there are none
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
