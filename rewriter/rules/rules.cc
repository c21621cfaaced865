#include "rewriter/rules/rules.h"

#include <algorithm>
#include <array>

#include "rewriter/rules/fusion/fuse_conv_bn.h"
#include "rewriter/rules/simplify/clean_up.h"
#include "support/error.h"

namespace fx::rules {

namespace {

// Made on first use: the rules are constants of other files, which may not be there yet while static objects are made.
const auto& rule_list() {
  static const std::array kRules = {
      kFuseConvBn,
      kCommonSubexpression,
      kDeadCode,
  };
  return kRules;
}

std::string known_names() {
  std::string names;
  for (const Group& group : groups()) names.append(group.name).append(", ");
  for (const ProgramRule& rule : rule_list()) names.append(rule.name).append(", ");
  return names.substr(0, names.size() - 2);
}

}  // namespace

std::string_view to_string(Promise promise) {
  static constexpr std::array<std::string_view, 3> kNames = {"bit-exact", "reassociates", "approximate"};
  return kNames[static_cast<std::size_t>(promise)];
}

std::span<const ProgramRule> all_rules() { return rule_list(); }

const std::vector<Group>& groups() {
  static const std::vector<Group> kGroups = {
      {"inference",
       "what makes a trained model faster: the default",
       {"fuse-conv-bn", "common-subexpression", "dead-code"}},
      {"fusion", "several operations become one", {"fuse-conv-bn"}},
      {"simplify", "less of the same", {"common-subexpression", "dead-code"}},
  };
  return kGroups;
}

std::vector<const ProgramRule*> select(const std::vector<std::string>& names) {
  std::vector<std::string_view> wanted;
  const auto add_group = [&](std::string_view name) {
    for (const Group& group : groups()) {
      if (group.name == name) {
        wanted.insert(wanted.end(), group.rules.begin(), group.rules.end());
        return true;
      }
    }
    return false;
  };
  if (names.empty()) add_group("inference");
  for (const std::string& name : names) {
    if (add_group(name)) continue;
    if (std::ranges::find(rule_list(), name, &ProgramRule::name) == rule_list().end()) {
      throw Error(ErrorKind::not_found, "there is no rule or group " + name + "; there are " + known_names());
    }
    wanted.push_back(name);
  }
  std::vector<const ProgramRule*> selected;
  for (const ProgramRule& rule : rule_list()) {
    if (std::ranges::find(wanted, rule.name) != wanted.end()) selected.push_back(&rule);
  }
  return selected;
}

}  // namespace fx::rules
