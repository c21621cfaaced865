#include <fxgraph/rewriter/rule_runner.h>

namespace fx::internal {

RuleRunner::Run::Run(const Rule& rule, const Graph& graph, const FindOptions& find, Rewriter& rewriter,
                     EffectIndex& effects, const DriverOptions& options)
    : program(rule.pattern.shared_data(), find),
      plan(program.plan(graph)),
      engine(program, graph, find, stats),
      replacement(rule.pattern.data(), rule.replacement),
      applier(rewriter, effects, rule.name, options.allow_output_aliases, options.shapes) {
  engine.set_plan(plan);
  report.rule = rule.name;
}

RuleRunner::RuleRunner(Rewriter& rewriter, const RuleSet& rules, const DriverOptions& options)
    : rewriter_(rewriter),
      rules_(rules),
      options_(options),
      find_(options.find),
      effects_(rewriter.graph(), options.modules) {
  if (options.shapes) find_.shapes = options.shapes;
  if (!find_.modules) find_.modules = options.modules;
  const Graph& graph = rewriter.graph();
  max_rewrites_ = options.max_rewrites ? options.max_rewrites : 100 * graph.size() + 10000;
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    runs_.push_back(std::make_unique<Run>(rules[i], graph, find_, rewriter, effects_, options));
    // An operator that is not there may come with a rewrite.
    runs_.back()->plan.impossible = false;
    index_.add(i, runs_.back()->program, runs_.back()->plan);
  }
}

bool RuleRunner::apply(std::size_t i, Match& match) {
  Run& run = *runs_[i];
  const Node& anchor = match.anchor();
  const auto start = std::chrono::steady_clock::now();
  const auto accepts = [&](const Match& again) { return static_cast<bool>(rules_[i].when(again)); };
  const Outcome outcome =
      run.applier.apply(match, run.replacement, rules_[i].when ? accepts : std::function<bool(const Match&)>());
  run.report.time += std::chrono::steady_clock::now() - start;
  if (outcome == Outcome::declined) ++run.report.filtered;
  if (outcome == Outcome::refused) refuse(i, anchor, *run.applier.objection().node, run.applier.objection().reason);
  if (outcome != Outcome::applied) return false;
  ++run.report.applied;
  ++applied_;
  return true;
}

void RuleRunner::graph_changed() {
  for (const auto& run : runs_) run->engine.forget_scans();
}

void RuleRunner::refuse(std::size_t i, const Node& anchor, const Node& node, const std::string& reason) {
  Refusal refusal{rules_[i].name, node.name(), reason};
  const auto [at, fresh] = refused_at_.emplace((static_cast<std::uint64_t>(i) << 32) | anchor.id(), refused_.size());
  if (fresh) {
    refused_.push_back({i, &anchor, std::move(refusal)});
  } else {
    refused_[at->second].refusal = std::move(refusal);
  }
}

RewriteReport RuleRunner::report(RewriteStop stop) {
  RewriteReport report;
  report.applied = applied_;
  report.stop = stop;
  for (const Refused& refused : refused_) {
    if (refused.anchor->is_erased()) continue;
    report.refused.push_back(refused.refusal);
    ++runs_[refused.rule]->report.refused;
  }
  for (const auto& run : runs_) {
    if (run->engine.exhausted()) report.stop = RewriteStop::search_budget;
    report.rules.push_back(run->report);
  }
  return report;
}

bool RuleRunner::out_of_time() const {
  return options_.max_time.count() > 0 && std::chrono::steady_clock::now() - start_ > options_.max_time;
}

}  // namespace fx::internal
