#include <fxgraph/rewriter/compiled_rules.h>

#include <algorithm>

#include <fxgraph/matchers/pattern_access.h>

namespace fx::internal {

namespace {

bool has_conditions(const Pattern& pattern) {
  return std::ranges::any_of(PatternAccess::of(pattern).nodes, &PatternNode::has_conditions);
}

}  // namespace

CompiledRules::CompiledRules(const RuleSet& rules, const FindOptions& find, const Graph& graph) : rules_(rules) {
  rules_.validate();
  entries_.reserve(rules_.size());
  const PresentCalls present(graph);
  for (std::uint32_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    auto facts = PatternAccess::facts(rule.pattern, find);
    SearchPlan plan = facts->plan(present);
    // An operator that is not there may come with a rewrite.
    plan.impossible = false;
    index_.add(i, *facts, plan);
    const bool paths_suffice = paths_.add(*facts, plan);
    if (!paths_suffice || rule.when || !rule.replacement.graph() || has_conditions(rule.pattern)) {
      far_.add(i, *facts, plan);
      any_far_ = true;
    }
    entries_.push_back({std::move(facts), std::move(plan),
                        ReplacementPlan(PatternAccess::of(rule.pattern), rule.replacement, find.commutative)});
  }
  paths_.merge();
}

}  // namespace fx::internal
