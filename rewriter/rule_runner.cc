#include <fxgraph/rewriter/rule_runner.h>

namespace fx::internal {

RuleRunner::Run::Run(RuleRunner& runner, std::size_t i)
    : program(runner.rules_.rule(i).pattern, runner.rules_.facts(i), runner.find_),
      engine(program, runner.rewriter_.graph(), runner.find_, stats),
      applier(runner.rewriter_, runner.effects_, runner.rules_.replacement(i), runner.rules_.rule(i).name,
              runner.options_.allow_output_aliases, runner.options_.shapes, runner.options_.guard) {
  engine.set_plan(runner.rules_.plan(i));
  engine.set_effects(runner.effects_);
}

RuleRunner::RuleRunner(Rewriter& rewriter, const CompiledRules& rules, const DriverOptions& options)
    : rewriter_(rewriter),
      rules_(rules),
      options_(options),
      find_(options.find),
      effects_(rewriter.graph(), options.find.modules),
      runs_(rules.size()),
      reports_(rules.size()),
      made_from_(rewriter.graph().id_bound()) {
  if (options.shapes) find_.shapes = options.shapes;
  const auto is_python = [](Op op, Symbol target) { return is_spelt_in_python(op, target); };
  if (!find_.calls && rewriter.graph().any_called(is_python)) find_.calls = &calls_.emplace(rewriter.graph());
  max_rewrites_ = options.max_rewrites ? options.max_rewrites : 100 * rewriter.graph().size() + 10000;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rules.facts(i)->check(find_);
    reports_[i].rule = rules.rule(i).name;
  }
}

RuleRunner::Run& RuleRunner::run_of(std::size_t i) {
  if (!runs_[i]) runs_[i] = std::make_unique<Run>(*this, i);
  return *runs_[i];
}

bool RuleRunner::apply(std::size_t i, Match& match) {
  Run& run = run_of(i);
  RuleReport& report = reports_[i];
  const Rule& rule = rules_.rule(i);
  const Node& anchor = match.anchor();
  const auto start = std::chrono::steady_clock::now();
  const auto accepts = [&](const Match& again) { return static_cast<bool>(rule.when(again)); };
  const ApplyResult result = run.applier.apply(match, rule.when ? accepts : std::function<bool(const Match&)>());
  report.time += std::chrono::steady_clock::now() - start;
  if (result == ApplyResult::declined) ++report.filtered;
  if (result == ApplyResult::refused) refuse(i, anchor, *run.applier.objection().node, run.applier.objection().reason);
  if (result != ApplyResult::applied) return false;
  ++report.applied;
  ++applied_;
  return true;
}

void RuleRunner::graph_changed() {
  for (const auto& run : runs_) {
    if (run) run->engine.forget_scans();
  }
}

void RuleRunner::refuse(std::size_t i, const Node& anchor, Refusal refusal) {
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
    ++reports_[refused.rule].refused;
  }
  for (const auto& run : runs_) {
    if (run && run->engine.exhausted()) report.stop = RewriteStop::search_budget;
  }
  report.rules = reports_;
  report.written_out = written_out_;
  return report;
}

bool RuleRunner::out_of_time() const {
  return options_.max_time.count() > 0 && std::chrono::steady_clock::now() - start_ >= options_.max_time;
}

}  // namespace fx::internal
