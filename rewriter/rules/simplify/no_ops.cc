// What does nothing when a program is run for its result: dropout in evaluation, clone, detach, alias, identities.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/analysis/no_ops.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/rules/operator_of.h>

namespace fx::rules::simplify_no_ops {

namespace {

std::vector<Rewrite> no_ops() {
  return {
      {.name = "dropout",
       .pattern =
           "{aten::dropout, aten::feature_dropout, aten::alpha_dropout, aten::feature_alpha_dropout}(x: node, _, "
           "False)",
       .replacement = "x",
       .examples = {"aten::dropout(x, 0.5, False)", "aten::alpha_dropout(x, 0.5, False)"}},
      {.name = "dropout-of-nothing",
       .pattern =
           "{aten::dropout, aten::feature_dropout, aten::alpha_dropout, aten::feature_alpha_dropout}(x: node, 0.0, _)",
       .replacement = "x",
       .examples = {"aten::dropout(x, 0.0, True)", "aten::feature_dropout(x, 0.0, True)"}},
      {.name = "detach",
       .pattern = "{aten::detach, aten::alias, aten::lift_fresh}(x: node)",
       .replacement = "x",
       .examples = {"aten::detach(x)", "aten::alias(x)"}},
      // A copy is needed where someone writes: the rewriter's own checks refuse those.
      {.name = "clone",
       .pattern = "aten::clone(x: node, memory_format=(None | lit(torch.preserve_format)))",
       .replacement = "x",
       .examples = {"aten::clone(x)"}},
      {.name = "contiguous",
       .pattern = "aten::contiguous(c: aten::contiguous(x: node))",
       .replacement = "aten::contiguous(x)"},
  };
}

/// True when the body returns exactly what goes in, the same tensor: Identity, Dropout in evaluation.
bool returns_input(const LeafModule& leaf) {
  const Graph* body = leaf.body();
  if (!body || !body->output_node()) return false;
  const std::vector<Node*> inputs = body->placeholders();
  const Node* value = body->output_node()->arg(0).node_or_null();
  const auto is_view = [](const Node& node) {  // another tensor
    const Call call = call_of(node);
    return call && call.schema().traits.view;
  };
  while (const Node* same = value && !is_view(*value) ? no_op_argument(*value) : nullptr) value = same;
  return !inputs.empty() && value == inputs[0];
}

PassResult identity_modules(RuleContext& program) {
  PassResult outcome;
  Graph& graph = program.module.graph();
  const ModuleInfo effects = module_info(program.module);
  for (Node& node : graph.nodes()) {
    if (!node.is(Op::call_module) || node.args().empty()) continue;
    const auto leaf = program.module.leaf(path_of(node));
    Node* input = node.args()[0].node_or_null();
    if (!leaf || !input || !returns_input(*leaf) || effects_of(node, effects).impure()) continue;
    program.rewriter.replace_all_uses_with(node, *input);
    program.rewriter.erase_node(node);
    ++outcome.applied;
  }
  return outcome;
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "drop-no-ops",
          .summary = "Drops dropout in evaluation mode, clone, detach, and contiguous done twice",
          .preconditions = "the program is run for its result, not trained; nobody writes to a value or to its copy",
          .order = 150,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = no_ops,
      },
      {
          .name = "identity-modules",
          .summary = "Drops calls of modules that return what they are given: Identity, Dropout in evaluation mode",
          .preconditions = "evaluation mode",
          .order = 140,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .pass = identity_modules,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::simplify_no_ops
