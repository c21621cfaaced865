#include "rewriter/rules/rules.h"

#include <algorithm>
#include <array>

#include "rewriter/rules/decomposition/activations.h"
#include "rewriter/rules/decomposition/attention.h"
#include "rewriter/rules/decomposition/inline_modules.h"
#include "rewriter/rules/decomposition/linear.h"
#include "rewriter/rules/decomposition/norms.h"
#include "rewriter/rules/fusion/activations.h"
#include "rewriter/rules/fusion/attention.h"
#include "rewriter/rules/fusion/fuse_conv_bn.h"
#include "rewriter/rules/fusion/linear.h"
#include "rewriter/rules/fusion/merge_linears.h"
#include "rewriter/rules/fusion/norms.h"
#include "rewriter/rules/simplify/clean_up.h"
#include "rewriter/rules/simplify/concat.h"
#include "rewriter/rules/simplify/constants.h"
#include "rewriter/rules/simplify/identities.h"
#include "rewriter/rules/simplify/no_ops.h"
#include "rewriter/rules/simplify/views.h"
#include "support/error.h"

namespace fx::rules {

namespace {

// The order of application. What takes apart comes first, then what makes others possible, then what looks for them.
constexpr std::array kRules = {
    &kInlineModules,
    &kDecomposeAttention,
    &kDecomposeRelu,
    &kDecomposeSilu,
    &kDecomposeGelu,
    &kDecomposeHardswish,
    &kDecomposeSoftmax,
    &kDecomposeBatchNorm,
    &kDecomposeLayerNorm,
    &kDecomposeGroupNorm,
    &kDecomposeLinear,
    &kDecomposeAddmm,
    // Less first: fewer users stand in the way.
    &kLiteralOperands,
    &kIdentityModules,
    &kDropNoOps,
    &kIdentityArithmetic,
    &kInversePairs,
    &kConstantArithmetic,
    &kDivisionByConstant,
    &kCasts,
    &kPermutations,
    &kReshapes,
    &kSqueezes,
    &kFullSlices,
    &kConcatenations,
    &kRecogniseAttention,
    &kRecogniseGelu,
    &kRecogniseSilu,
    &kRecogniseHardswish,
    &kRecogniseLeakyRelu,
    &kRecogniseLayerNorm,
    &kRecogniseRmsNorm,
    &kRecogniseLinear,
    &kFuseConvBn,
    &kFuseLinearBn,
    &kFuseBnLinear,
    &kMergeLinears,
    &kConstantFolding,
    &kCommonSubexpression,
    &kDeadCode,
};

std::string known_names() {
  std::string names;
  for (const Selection& selection : selections()) names.append(selection.name).append(", ");
  for (const ProgramRule* rule : kRules) names.append(rule->name).append(", ");
  return names.substr(0, names.size() - 2);
}

Selection by_group(std::string_view summary, Group group) {
  Selection selection{to_string(group), summary, {}};
  for (const ProgramRule* rule : kRules) {
    if (rule->group == group) selection.rules.push_back(rule);
  }
  return selection;
}

std::vector<Selection> make_selections() {
  std::vector<Selection> made = {{"inference", "what makes a trained model faster: the default", {}}};
  for (const ProgramRule* rule : kRules) {
    if (rule->inference) made[0].rules.push_back(rule);
  }
  made.push_back(by_group("several operations become one", Group::fusion));
  made.push_back(by_group("one operation becomes simpler ones", Group::decomposition));
  made.push_back(by_group("less of the same", Group::simplify));
  return made;
}

}  // namespace

std::string_view to_string(Group group) {
  static constexpr std::array<std::string_view, 3> kNames = {"fusion", "decomposition", "simplify"};
  return kNames[static_cast<std::size_t>(group)];
}

std::span<const ProgramRule* const> all_rules() { return kRules; }

const std::vector<Selection>& selections() {
  static const std::vector<Selection> kSelections = make_selections();
  return kSelections;
}

std::vector<const ProgramRule*> select(const std::vector<std::string>& names) {
  std::vector<const ProgramRule*> wanted;
  const auto add = [&](const std::string& name) {
    for (const Selection& selection : selections()) {
      if (selection.name != name) continue;
      wanted.insert(wanted.end(), selection.rules.begin(), selection.rules.end());
      return true;
    }
    for (const ProgramRule* rule : kRules) {
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
  std::vector<const ProgramRule*> selected;
  for (const ProgramRule* rule : kRules) {
    if (std::ranges::find(wanted, rule) != wanted.end()) selected.push_back(rule);
  }
  return selected;
}

}  // namespace fx::rules
