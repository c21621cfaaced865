// The rules of a set at work on one graph: searches, counters, what was refused. Internal to rewriter/.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fxgraph/matchers/search.h>
#include <fxgraph/rewriter/applier.h>
#include <fxgraph/rewriter/compiled_rules.h>
#include <fxgraph/rewriter/driver.h>

namespace fx::internal {

class RuleRunner {
 public:
  /// What it is given must outlive it.
  RuleRunner(Rewriter& rewriter, const CompiledRules& rules, const DriverOptions& options);

  const AnchorIndex& index() const { return rules_.index(); }

  /// Finds the first match of rule `i` that starts at `anchor`, avoiding nodes for which `taken(node)` holds, and that
  /// the rule's condition accepts.
  template <typename Taken>
  std::optional<Match> find(std::size_t i, Node& anchor, Taken&& taken);
  /// Rewrites the match; counts what became of it.
  bool apply(std::size_t i, Match& match);
  /// Forgets lists of nodes that searches keep: the graph has changed.
  void graph_changed();

  /// Refusals in the order in which they first happened, of matches whose nodes are still there.
  RewriteReport report(RewriteStop stop);
  std::size_t applied() const { return applied_; }
  bool out_of_time() const;
  std::size_t max_rewrites() const { return max_rewrites_; }
  const FindOptions& find_options() const { return find_; }
  TrackedEffects& effects() { return effects_; }
  /// Notes why a match of rule `i` is not rewritten, in place of what was noted of that anchor before.
  void refuse(std::size_t i, const Node& anchor, Refusal refusal);
  /// The id of the first node that a rule may have made.
  std::uint32_t made_from() const { return made_from_; }
  void add_written_out(const std::vector<std::string>& names) {
    written_out_.insert(written_out_.end(), names.begin(), names.end());
  }

 private:
  /// Of a rule for which there is a place to try.
  struct Run {
    Run(RuleRunner& runner, std::size_t i);

    FindStats stats;
    CompiledPattern program;
    Engine engine;
    Applier applier;
  };
  struct Refused {
    std::size_t rule;
    const Node* anchor;
    Refusal refusal;
  };

  Run& run_of(std::size_t i);
  void refuse(std::size_t i, const Node& anchor, const Node& node, const std::string& reason) {
    refuse(i, anchor, {rules_.rule(i).name, node.name(), reason});
  }

  Rewriter& rewriter_;
  const CompiledRules& rules_;
  const DriverOptions& options_;
  FindOptions find_;
  std::optional<Calls> calls_;  // of a graph that is spelt in Python's words
  TrackedEffects effects_;
  std::vector<std::unique_ptr<Run>> runs_;  // null: not met yet
  std::vector<RuleReport> reports_;
  std::vector<Refused> refused_;
  std::vector<std::string> written_out_;
  std::unordered_map<std::uint64_t, std::size_t> refused_at_;  // (rule, anchor) -> position in refused_
  std::size_t applied_ = 0;
  std::size_t max_rewrites_;
  std::uint32_t made_from_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

template <typename Taken>
std::optional<Match> RuleRunner::find(std::size_t i, Node& anchor, Taken&& taken) {
  Run& run = run_of(i);
  RuleReport& report = reports_[i];
  if (!run.program.may_be(rules_.plan(i).anchor, anchor)) return std::nullopt;
  ++report.tried;
  run.engine.start(anchor);
  std::pair<Node*, Node*> escape{nullptr, nullptr};
  bool matched = false;
  bool filtered = false;
  std::string why;
  while (run.engine.next()) {
    if (const auto [value, user] = run.engine.escape(); value) {
      if (!escape.first) escape = {value, user};
      continue;
    }
    bool free = true;
    for (const Node* node : run.engine.matched_nodes()) free = free && !taken(*node);
    if (!free) continue;
    matched = true;
    Match match = MatchBuilder::make(run.program, run.engine);
    if (options_.guard) MatchBuilder::take_notes(match);
    const Decision decision = rules_.rule(i).when ? rules_.rule(i).when(match) : true;
    if (decision) {
      ++report.matched;
      return match;
    }
    filtered = true;
    if (why.empty()) why = decision.reason();
  }
  if (!why.empty()) {
    refuse(i, anchor, anchor, why);
  } else {
    report.filtered += filtered;
  }
  report.matched += matched || escape.first;
  if (!matched && escape.first) refuse(i, anchor, *escape.first, "its value is also used by " + escape.second->name());
  return std::nullopt;
}

}  // namespace fx::internal
