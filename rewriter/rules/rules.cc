#include <fxgraph/rewriter/rules/rules.h>

#include <rule_families.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <fxgraph/support/error.h>

namespace fx::rules {

namespace {

std::vector<const OptimizeRule*> in_order() {
  std::vector<const OptimizeRule*> rules;
  for (const Family family : kFamilies) {
    for (const OptimizeRule& rule : family()) rules.push_back(&rule);
  }
  std::ranges::sort(rules, {}, [](const OptimizeRule* rule) { return std::pair(rule->order, rule->name); });
  return rules;
}

std::string known_names() {
  std::string names;
  for (const Selection& selection : selections()) names.append(selection.name).append(", ");
  for (const OptimizeRule* rule : all_rules()) names.append(rule->name).append(", ");
  return names.substr(0, names.size() - 2);
}

Selection by_group(std::string_view summary, Group group) {
  Selection selection{to_string(group), summary, {}};
  for (const OptimizeRule* rule : all_rules()) {
    if (rule->group == group) selection.rules.push_back(rule);
  }
  return selection;
}

std::vector<Selection> make_selections() {
  std::vector<Selection> made = {
      {"inference", "what makes a trained model faster: the default; gradients may change", {}}};
  for (const OptimizeRule* rule : all_rules()) {
    if (rule->inference) made[0].rules.push_back(rule);
  }
  made.push_back(by_group("several operations become one", Group::fusion));
  made.push_back(by_group("one operation becomes simpler ones", Group::decomposition));
  made.push_back(by_group("less of the same", Group::simplify));
  made.push_back(by_group("calls of what this machine computes fastest: --target cpu", Group::lowering));
  made.push_back(by_group("products of fewer digits where they are faster: --dtype bfloat16", Group::precision));
  return made;
}

}  // namespace

std::string_view to_string(Group group) {
  static constexpr std::array<std::string_view, 5> kNames = {"fusion", "decomposition", "simplify", "lowering",
                                                             "precision"};
  return kNames[static_cast<std::size_t>(group)];
}

const std::vector<Rule>& OptimizeRule::rules() const {
  static std::mutex mutex;
  static std::map<std::string_view, std::vector<Rule>> made;
  const std::lock_guard lock(mutex);
  const auto known = made.find(name);
  if (known != made.end()) return known->second;
  return made.emplace(name, rewrites ? rules(rewrites()) : std::vector<Rule>()).first->second;
}

std::vector<Rule> OptimizeRule::rules(std::vector<Rewrite> cases) const {
  std::vector<Rule> named;
  for (Rewrite& each : cases) {
    named.push_back({.name = std::string(name) + (each.name.empty() ? "" : "/") + each.name,
                     .pattern = std::move(each.pattern),
                     .when = std::move(each.when),
                     .replacement = std::move(each.replacement),
                     .promise = promise,
                     .needs = each.needs,
                     .examples = std::move(each.examples)});
  }
  return named;
}

std::span<const OptimizeRule* const> all_rules() {
  static const std::vector<const OptimizeRule*> kRules = in_order();
  return kRules;
}

const std::vector<Selection>& selections() {
  static const std::vector<Selection> kSelections = make_selections();
  return kSelections;
}

std::vector<const OptimizeRule*> select(const std::vector<std::string>& names) {
  std::vector<const OptimizeRule*> wanted;
  const auto add = [&](const std::string& name) {
    for (const Selection& selection : selections()) {
      if (selection.name != name) continue;
      wanted.insert(wanted.end(), selection.rules.begin(), selection.rules.end());
      return true;
    }
    for (const OptimizeRule* rule : all_rules()) {
      if (rule->name != name) continue;
      wanted.push_back(rule);
      return true;
    }
    return false;
  };
  if (names.empty()) add("inference");
  for (const std::string& name : names) {
    if (!add(name))
      throw Error(ErrorKind::not_found, "there is no rule or group " + name + "; there are " + known_names());
  }
  std::vector<const OptimizeRule*> selected;
  for (const OptimizeRule* rule : all_rules()) {
    if (std::ranges::find(wanted, rule) != wanted.end()) selected.push_back(rule);
  }
  return selected;
}

}  // namespace fx::rules
