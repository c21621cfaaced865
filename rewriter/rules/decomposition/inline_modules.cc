// Called modules become the operators that they are made of.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/scripted_bodies.h>

namespace fx::rules::decomposition_inline_modules {

namespace {

std::size_t count_calls(const Graph& graph) {
  std::size_t calls = 0;
  for (const Node& node : graph.nodes()) calls += node.is(Op::call_module);
  return calls;
}

PassResult write_out(RuleContext& program) {
  PassResult outcome;
  const std::size_t calls = count_calls(program.module.graph());
  const ModuleBodies scripted = internal::scripted_bodies(program.module, program.values.example());
  internal::write_out_traced_leaves(program.module);
  Graph written = inline_modules(program.module, scripted);
  ask_inputs_for_ranks(program.module, written);
  outcome.applied = calls - count_calls(written);
  for (const Node& node : written.nodes()) {
    if (node.is(Op::call_module))
      outcome.refused.push_back({{}, node.name(), "what its module computes is not known as operators"});
  }
  if (outcome.applied > 0) program.module.set_graph(std::move(written));
  return outcome;
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "inline-modules",
          .summary =
              "Called modules become the operators that they are made of, so that the rules on operators see them",
          .preconditions =
              "what the module computes is known; the mode that it is in, training or evaluation, becomes fixed",
          .order = 10,
          .group = Group::decomposition,
          .promise = Promise::bit_exact,
          .pass = write_out,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::decomposition_inline_modules
