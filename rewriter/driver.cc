#include <fxgraph/rewriter/driver.h>

#include <deque>

#include <fxgraph/rewriter/rule_runner.h>
#include <fxgraph/rewriter/write_out.h>

namespace fx {

namespace {

using internal::CompiledRules;
using internal::RuleRunner;

/// Runs `drive`, undoing everything when it throws.
template <typename Drive>
RewriteReport transact(Rewriter& rewriter, const DriverOptions& options, Drive&& drive) {
  const Rewriter::Mark mark = rewriter.mark();
  try {
    RewriteReport report = drive();
    if (options.dry_run) rewriter.rollback(mark);
    return report;
  } catch (...) {
    rewriter.rollback(mark);
    throw;
  }
}

/// By definitions a decomposition's own result would be found again, for ever.
void check_definitions(const RuleSet& rules, const DriverOptions& options) {
  if (!options.find.definitions) return;
  FindOptions find = options.find;
  find.contained = false;
  find.shapes = nullptr;
  find.stats = nullptr;
  for (const Rule& rule : rules.rules()) {
    if (rule.may_repeat || !rule.replacement.graph() || rule.pattern.needs_shapes()) continue;
    const std::vector<Match> again = fx::find(*rule.replacement.graph(), rule.pattern, find);
    if (again.empty()) continue;
    const std::vector<std::string> rows = again.front().definitions();
    throw Error(ErrorKind::invalid_argument, "the rule " + rule.name + " finds its own result" +
                                                 (rows.empty() ? "" : " by " + rows.front()) +
                                                 ": run it without definitions");
  }
}

// ── As it is read ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Rewrites where rules match the program as it is read and not as it stands: what they match is written out first.
class ReadSweep {
 public:
  ReadSweep(Rewriter& rewriter, const CompiledRules& rules, const DriverOptions& options, RuleRunner& runner)
      : rewriter_(rewriter), rules_(rules), options_(options), runner_(runner) {
    for (std::size_t i = 0; i < rules.size(); ++i) patterns_.push_back(rules.rule(i).pattern);
  }

  /// Calls `on_applied()` behind each rewrite. Returns how many there were.
  template <typename OnApplied>
  std::size_t run(OnApplied&& on_applied) {
    if (makes_what_is_read()) return 0;
    const std::shared_ptr<const internal::Reading> reading =
        internal::Reading::of(rewriter_.graph(), patterns_, runner_.find_options(), runner_.made_from());
    if (!reading) return 0;
    std::size_t applied = 0;
    std::vector<bool> claimed;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      internal::Search search(patterns_[i], internal::PresentCalls(reading->graph()), reading->options(), claimed);
      search.see_forms(reading->forms(), /*results=*/true);
      search.try_all();
      internal::WriteOut written(rewriter_, runner_.effects(), reading, Symbol(rules_.rule(i).name), options_.shapes,
                                 options_.guard);
      for (const Match& match : search.matches) {
        if (runner_.applied() == runner_.max_rewrites() || runner_.out_of_time()) return applied;
        if (std::optional<Refusal> refusal = written.make(match)) {
          runner_.refuse(i, reading->source(match.anchor()), *std::move(refusal));
        } else if (written.made_any() && apply(i, match, written)) {
          ++applied;
          runner_.add_written_out(written.sources());
          on_applied();
        } else {
          written.undo();
        }
      }
    }
    return applied;
  }

 private:
  /// True for a set that writes in place or calls modules itself: it takes the program as it stands, or what one rule
  /// makes another would read as something else, for ever.
  bool makes_what_is_read() const {
    return std::ranges::any_of(rules_.rules().rules(), [](const Rule& rule) {
      return rule.replacement.graph() && std::ranges::any_of(rule.replacement.graph()->nodes(), [](const Node& node) {
               return node.is(Op::call_module) || effects_of(node).writes;
             });
    });
  }

  bool apply(std::size_t rule, const Match& read, const internal::WriteOut& written) {
    Node* anchor = written.in_program(read.values()[rules_.plan(rule).anchor].node());
    if (!anchor) return false;
    std::optional<Match> match = runner_.find(rule, *anchor, [](const Node&) { return false; });
    if (!match) return false;
    internal::MatchBuilder::add_notes(*match, written.asked());
    return runner_.apply(rule, *match);
  }

  Rewriter& rewriter_;
  const CompiledRules& rules_;
  const DriverOptions& options_;
  RuleRunner& runner_;
  std::vector<Pattern> patterns_;
};

// ── Once ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

RewriteReport once(Rewriter& rewriter, const CompiledRules& rules, const DriverOptions& options) {
  RuleRunner runner(rewriter, rules, options);
  Graph& graph = rewriter.graph();
  std::vector<bool> claimed(graph.id_bound());
  std::vector<std::pair<std::size_t, Match>> found;
  std::vector<std::uint32_t> ids;
  for (Node& node : graph.nodes()) {
    runner.index().candidates(node, ids);
    for (const std::uint32_t id : ids) {
      std::optional<Match> match = runner.find(id, node, [&](const Node& part) { return claimed[part.id()]; });
      if (!match) continue;
      for (const Node* part : match->nodes()) claimed[part->id()] = true;
      found.emplace_back(id, std::move(*match));
    }
  }
  for (auto& [rule, match] : found) {
    if (runner.applied() == runner.max_rewrites()) return runner.report(RewriteStop::max_rewrites);
    if (runner.out_of_time()) return runner.report(RewriteStop::max_time);
    runner.apply(rule, match);
  }
  ReadSweep(rewriter, rules, options, runner).run([&] { runner.graph_changed(); });
  return runner.report(RewriteStop::complete);
}

// ── To a fixed point ─────────────────────────────────────────────────────────────────────────────────────────────────

/// Notes what edits touch.
class Changes : public RewriteListener {
 public:
  void created(Node& node) override { touched.push_back(&node); }
  void changed(Node& node) override { touched.push_back(&node); }
  void erased(Node& node) override {
    node.for_each_input([&](Node& input) { less_used.push_back(&input); });
  }

  std::vector<Node*> touched;
  std::vector<Node*> less_used;
};

class FixedPoint {
 public:
  /// `reads`: also where rules match the program as it is read alone.
  FixedPoint(Rewriter& rewriter, const CompiledRules& rules, const DriverOptions& options, bool reads)
      : rewriter_(rewriter),
        rules_(rules),
        options_(options),
        reads_(reads),
        runner_(rewriter, rules, options),
        queued_(rewriter.graph(), false) {}

  RewriteReport run() {
    rewriter_.set_listener(&changes_);
    RewriteStop stop = RewriteStop::fixed_point;
    try {
      enqueue_all(runner_.index());
      do {
        stop = drain();
        while (stop == RewriteStop::fixed_point && rules_.far() && applied_since_scan_ > 0) {
          applied_since_scan_ = 0;
          enqueue_all(*rules_.far());
          stop = drain();
        }
      } while (stop == RewriteStop::fixed_point && reads_ && sweep_reading() > 0);
    } catch (...) {
      rewriter_.set_listener(nullptr);
      throw;
    }
    rewriter_.set_listener(nullptr);
    return runner_.report(stop);
  }

 private:
  void enqueue_all(const internal::AnchorIndex& index) {
    for (Node& node : rewriter_.graph().nodes()) {
      if (index.starts_at(node)) enqueue(node);
    }
  }

  // What is gone by the time that it is its turn is passed over then.
  void enqueue(Node& node) {
    if (queued_[node] || !runner_.index().starts_at(node)) return;
    queued_[node] = true;
    queue_.push_back(&node);
  }

  RewriteStop drain() {
    std::vector<std::uint32_t> ids;
    while (!queue_.empty()) {
      Node& node = *queue_.front();
      queue_.pop_front();
      queued_[node] = false;
      if (node.is_erased()) continue;
      if (runner_.out_of_time()) return RewriteStop::max_time;
      runner_.index().candidates(node, ids);
      for (const std::uint32_t id : ids) {
        if (runner_.applied() == runner_.max_rewrites()) return RewriteStop::max_rewrites;
        if (try_rule(id, node)) break;
      }
    }
    return RewriteStop::fixed_point;
  }

  bool try_rule(std::uint32_t id, Node& node) {
    std::optional<Match> match = runner_.find(id, node, [](const Node&) { return false; });
    if (!match) return false;
    changes_.touched.clear();
    changes_.less_used.clear();
    if (!runner_.apply(id, *match)) return false;
    ++applied_since_scan_;
    runner_.graph_changed();
    revisit();
    enqueue(node);
    return true;
  }

  std::size_t sweep_reading() {
    changes_.touched.clear();
    changes_.less_used.clear();
    return ReadSweep(rewriter_, rules_, options_, runner_).run([&] {
      ++applied_since_scan_;
      runner_.graph_changed();
      revisit();
      changes_.touched.clear();
      changes_.less_used.clear();
    });
  }

  void revisit() {
    visited_.clear();
    const auto look_from = [&](Node& changed) {
      if (!changed.is_erased()) rules_.paths().walk(changed, visited_, [&](Node& place) { enqueue(place); });
    };
    for (Node* node : changes_.touched) look_from(*node);
    // An inner value matters once few enough use it.
    for (Node* node : changes_.less_used) {
      if (node->num_users() <= rules_.paths().most_users()) look_from(*node);
    }
  }

  Rewriter& rewriter_;
  const CompiledRules& rules_;
  const DriverOptions& options_;
  const bool reads_;
  RuleRunner runner_;
  Changes changes_;
  internal::RevisitPaths::Visited visited_;
  std::size_t applied_since_scan_ = 0;
  NodeMap<bool> queued_;
  std::deque<Node*> queue_;
};

}  // namespace

RewriteReport rewrite_once(Rewriter& rewriter, const RuleSet& rules, const DriverOptions& options) {
  check_definitions(rules, options);
  const CompiledRules compiled(rules, options.find, rewriter.graph());
  return transact(rewriter, options, [&] { return once(rewriter, compiled, options); });
}

RewriteReport rewrite_once(Graph& graph, const RuleSet& rules, const DriverOptions& options) {
  Rewriter rewriter(graph);
  return rewrite_once(rewriter, rules, options);
}

RewriteReport internal::rewrite_to_fixed_point(Rewriter& rewriter, const CompiledRules& rules,
                                               const DriverOptions& options) {
  return transact(rewriter, options, [&] { return FixedPoint(rewriter, rules, options, /*reads=*/false).run(); });
}

RewriteReport rewrite_to_fixed_point(Rewriter& rewriter, const RuleSet& rules, const DriverOptions& options) {
  check_definitions(rules, options);
  const CompiledRules compiled(rules, options.find, rewriter.graph());
  return transact(rewriter, options, [&] { return FixedPoint(rewriter, compiled, options, /*reads=*/true).run(); });
}

RewriteReport rewrite_to_fixed_point(Graph& graph, const RuleSet& rules, const DriverOptions& options) {
  Rewriter rewriter(graph);
  return rewrite_to_fixed_point(rewriter, rules, options);
}

}  // namespace fx
