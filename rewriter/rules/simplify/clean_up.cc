#include "rewriter/rules/simplify/clean_up.h"

#include "module/module_effects.h"
#include "rewriter/common_subexpression.h"

namespace fx::rules {

namespace {

Outcome common_subexpression(GraphModule& module) {
  return {eliminate_common_subexpressions(module.graph(), module_effects(module)), {}, {}};
}

Outcome dead_code(GraphModule& module) {
  Outcome outcome{eliminate_dead_code(module.graph(), module_effects(module)), {}, {}};
  const std::size_t modules = module.delete_all_unused_submodules();
  const std::size_t tensors = module.delete_all_unused_attributes();
  const auto add = [&](std::size_t count, const char* what) {
    if (count == 0) return;
    if (!outcome.detail.empty()) outcome.detail += ", ";
    outcome.detail += std::to_string(count) + " " + what + (count == 1 ? "" : "s") + " dropped";
  };
  add(outcome.applied, "node");
  add(modules, "module");
  add(tensors, "tensor");
  return outcome;
}

}  // namespace

const ProgramRule kCommonSubexpression = {
    "common-subexpression",
    "Computes once what is computed twice",
    "equal operators on equal arguments, pure, nothing written between that they read",
    Promise::bit_exact,
    common_subexpression,
};

const ProgramRule kDeadCode = {
    "dead-code",
    "Removes what nothing uses: nodes, submodules, parameters",
    "no effect that could be seen: writes, random numbers and assertions stay",
    Promise::bit_exact,
    dead_code,
};

}  // namespace fx::rules
