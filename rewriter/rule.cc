#include <fxgraph/rewriter/rule.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/rewriter/replacement_plan.h>
#include <fxgraph/support/error.h>

namespace fx {

const Rule* RuleSet::find(std::string_view name) const {
  for (const Rule& rule : rules_) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

RuleSet RuleSet::only(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (find(name)) continue;
    std::string known;
    for (const Rule& rule : rules_) known += (known.empty() ? "" : ", ") + rule.name;
    throw Error(ErrorKind::not_found,
                "there is no rule called '" + name + "'; there are " + (known.empty() ? "none" : known));
  }
  RuleSet chosen;
  for (const Rule& rule : rules_) {
    if (std::find(names.begin(), names.end(), rule.name) != names.end()) chosen.add(rule);
  }
  return chosen;
}

namespace {

/// The smallest graph that the pattern matches, when it says one: no sets, alternatives or open ends. A rule that
/// matches this graph matches everywhere the pattern does.
std::optional<Graph> example_of(const Pattern& pattern) {
  for (const internal::PatternNode& node : internal::PatternAccess::of(pattern).nodes) {
    if (node.bare || node.commutative || node.kind == internal::PatternKind::hole || node.tolerance >= 0)
      return std::nullopt;
  }
  try {
    return internal::graph_of_pattern(internal::PatternAccess::of(pattern));
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// A pattern whose tests are all in its text: nothing in C++ or about uses narrows it.
bool is_plain(const Pattern& pattern) {
  return std::ranges::none_of(internal::PatternAccess::of(pattern).nodes, &internal::PatternNode::has_conditions) &&
         !pattern.needs_shapes() && !pattern.needs_module_types();
}

class Checker {
 public:
  explicit Checker(const std::vector<Rule>& rules) : rules_(rules) {
    for (const Rule& rule : rules) {
      texts_.push_back(rule.pattern.str());
      examples_.push_back(example_of(rule.pattern));
    }
  }

  std::vector<RuleProblem> run() {
    std::unordered_map<std::string, std::size_t> names;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const Rule& rule = rules_[i];
      if (rule.name.empty()) {
        report(i, true, "it has no name");
      } else if (!names.emplace(rule.name, i).second) {
        report(i, true, "rules " + std::to_string(names[rule.name]) + " and " + std::to_string(i) + " have this name");
      }
      check_binding(i);
      check_repetition(i);
      for (std::size_t j = 0; j < i; ++j) {
        if (check_shadow(j, i)) break;
      }
    }
    return std::move(problems_);
  }

 private:
  void report(std::size_t rule, bool error, std::string message) {
    problems_.push_back(
        {error, rules_[rule].name.empty() ? "rule " + std::to_string(rule) : rules_[rule].name, std::move(message)});
  }

  void check_binding(std::size_t i) {
    try {
      const internal::ReplacementPlan plan(internal::PatternAccess::of(rules_[i].pattern), rules_[i].replacement);
    } catch (const Error& error) {
      report(i, true, error.message());
    }
  }

  void check_repetition(std::size_t i) {
    const Rule& rule = rules_[i];
    if (!rule.replacement.graph() || rule.may_repeat) return;
    if (rule.pattern.needs_shapes() || rule.pattern.needs_module_types()) return;  // known when the rule is run
    FindOptions options;
    options.contained = false;
    const std::vector<Match> found = fx::find(*rule.replacement.graph(), rule.pattern, options);
    if (!found.empty()) {
      report(i, !rule.when,
             "its replacement contains its own pattern, at " + found[0].anchor().name() +
                 ": to a fixed point it would never end; say may_repeat if that is meant");
    }
  }

  /// Does the earlier rule take every place of the later one?
  bool check_shadow(std::size_t earlier, std::size_t later) {
    const Rule& first = rules_[earlier];
    const bool certain = !first.when && is_plain(first.pattern);
    if (texts_[earlier] == texts_[later] && is_plain(first.pattern)) {
      report(later, certain, "its pattern is that of '" + first.name + "', which comes first");
      return true;
    }
    if (!certain) return false;
    const std::optional<Graph>& example = examples_[later];
    if (!example) return false;
    const Node* result = nullptr;
    example->output_node()->for_each_input([&](const Node& node) { result = result ? result : &node; });
    if (!result || !matches(*example, first.pattern, *result)) return false;
    report(later, true, "it can never apply: '" + first.name + "', which comes first, matches wherever it does");
    return true;
  }

  const std::vector<Rule>& rules_;
  std::vector<std::string> texts_;              // of the patterns
  std::vector<std::optional<Graph>> examples_;  // of the patterns
  std::vector<RuleProblem> problems_;
};

}  // namespace

std::vector<RuleProblem> RuleSet::check() const { return Checker(rules_).run(); }

void RuleSet::validate() const {
  if (valid_) return;
  std::string text;
  for (const RuleProblem& problem : check()) {
    if (problem.error) text += (text.empty() ? "" : "; ") + problem.rule + ": " + problem.message;
  }
  if (!text.empty()) throw Error(ErrorKind::invalid_argument, "bad rules: " + text);
  valid_ = true;
}

}  // namespace fx
