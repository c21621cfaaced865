#include <fxgraph/rewriter/driver.h>

#include <deque>

#include <fxgraph/rewriter/rule_runner.h>

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
  FixedPoint(Rewriter& rewriter, const CompiledRules& rules, const DriverOptions& options)
      : rewriter_(rewriter), rules_(rules), runner_(rewriter, rules, options), queued_(rewriter.graph(), false) {}

  RewriteReport run() {
    rewriter_.set_listener(&changes_);
    RewriteStop stop = RewriteStop::fixed_point;
    try {
      enqueue_all(runner_.index());
      stop = drain();
      while (stop == RewriteStop::fixed_point && rules_.far() && applied_since_scan_ > 0) {
        applied_since_scan_ = 0;
        enqueue_all(*rules_.far());
        stop = drain();
      }
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
  RuleRunner runner_;
  Changes changes_;
  internal::RevisitPaths::Visited visited_;
  std::size_t applied_since_scan_ = 0;
  NodeMap<bool> queued_;
  std::deque<Node*> queue_;
};

}  // namespace

RewriteReport rewrite_once(Rewriter& rewriter, const RuleSet& rules, const DriverOptions& options) {
  const CompiledRules compiled(rules, options.find, rewriter.graph());
  return transact(rewriter, options, [&] { return once(rewriter, compiled, options); });
}

RewriteReport rewrite_once(Graph& graph, const RuleSet& rules, const DriverOptions& options) {
  Rewriter rewriter(graph);
  return rewrite_once(rewriter, rules, options);
}

RewriteReport internal::rewrite_to_fixed_point(Rewriter& rewriter, const CompiledRules& rules,
                                               const DriverOptions& options) {
  return transact(rewriter, options, [&] { return FixedPoint(rewriter, rules, options).run(); });
}

RewriteReport rewrite_to_fixed_point(Rewriter& rewriter, const RuleSet& rules, const DriverOptions& options) {
  return internal::rewrite_to_fixed_point(rewriter, CompiledRules(rules, options.find, rewriter.graph()), options);
}

RewriteReport rewrite_to_fixed_point(Graph& graph, const RuleSet& rules, const DriverOptions& options) {
  Rewriter rewriter(graph);
  return rewrite_to_fixed_point(rewriter, rules, options);
}

}  // namespace fx
