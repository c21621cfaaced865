#include "rewriter/rules/simplify/clean_up.h"

#include "module/module_effects.h"
#include "rewriter/common_subexpression.h"

namespace fx::rules {

namespace {

Outcome common_subexpression(Program& program) {
  return {.applied = eliminate_common_subexpressions(program.module.graph(), module_effects(program.module))};
}

Outcome dead_code(Program& program) {
  GraphModule& module = program.module;
  Outcome outcome{.applied = eliminate_dead_code(module.graph(), module_effects(module))};
  outcome.dropped = {{"node", outcome.applied},
                     {"module", module.delete_all_unused_submodules()},
                     {"tensor", module.delete_all_unused_attributes()}};
  return outcome;
}

}  // namespace

const ProgramRule kCommonSubexpression = {
    .name = "common-subexpression",
    .summary = "Computes once what is computed twice",
    .preconditions = "equal operators on equal arguments, pure, nothing written between that they read",
    .group = Group::simplify,
    .inference = true,
    .promise = Promise::bit_exact,
    .pass = common_subexpression,
};

const ProgramRule kDeadCode = {
    .name = "dead-code",
    .summary = "Removes what nothing uses: nodes, submodules, parameters",
    .preconditions = "no effect that could be seen: writes, random numbers and assertions stay",
    .group = Group::simplify,
    .inference = true,
    .promise = Promise::bit_exact,
    .pass = dead_code,
};

}  // namespace fx::rules
