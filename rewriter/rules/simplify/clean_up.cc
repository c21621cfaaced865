// Common subexpressions and dead code, as rules: what is computed twice or for nothing goes.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/program/passes.h>

namespace fx::rules::simplify_clean_up {

namespace {

/// LibTorch multiplies the second of two complex numbers by an alpha: infinities tell x + y from y + x.
bool is_complex_sum(const RuleContext& program, const Node& node) {
  const TensorInfo* info = program.values.example(node);
  if (!info || !TypeSet{DType::complex64, DType::complex128}.contains(info->dtype)) return false;
  const Call call = call_of(node);
  return call && call.schema().traits.commutative;
}

PassResult common_subexpression(RuleContext& program) {
  return {.applied = eliminate_common_subexpressions(program.module,
                                                     [&](const Node& node) { return is_complex_sum(program, node); })};
}

PassResult dead_code(RuleContext& program) {
  GraphModule& module = program.module;
  PassResult outcome{.applied = eliminate_dead_code(module)};
  outcome.dropped = {{"node", outcome.applied},
                     {"module", module.delete_all_unused_submodules()},
                     {"tensor", module.delete_all_unused_attributes()}};
  return outcome;
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "common-subexpression",
          .summary = "Computes once what is computed twice",
          .preconditions =
              "equal operators on equal arguments, pure, nothing written between that they read; x + y is y + x: of "
              "complex numbers, if no --input says that they are, where they are finite",
          .order = 390,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .pass = common_subexpression,
      },
      {
          .name = "dead-code",
          .summary = "Removes what nothing uses: nodes, submodules, parameters",
          .preconditions = "no effect that could be seen: writes, random numbers and assertions stay",
          .order = 400,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .pass = dead_code,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::simplify_clean_up
