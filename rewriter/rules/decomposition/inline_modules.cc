#include "rewriter/rules/decomposition/inline_modules.h"

#include "module/inline_modules.h"

namespace fx::rules {

namespace {

std::size_t count_calls(const Graph& graph) {
  std::size_t calls = 0;
  for (const Node& node : graph.nodes()) calls += node.is(Op::call_module);
  return calls;
}

Outcome write_out(Program& program) {
  Outcome outcome;
  Graph written = inline_modules(program.module);
  outcome.applied = count_calls(program.module.graph()) - count_calls(written);
  for (const Node& node : written.nodes()) {
    if (node.is(Op::call_module))
      outcome.refused.push_back({{}, node.name(), "what its module computes is not known as operators"});
  }
  if (outcome.applied > 0) program.module.set_graph(std::move(written));
  return outcome;
}

}  // namespace

const ProgramRule kInlineModules = {
    .name = "inline-modules",
    .summary = "Called modules become the operators that they are made of, so that the rules on operators see them",
    .preconditions = "what the module computes is known; the mode that it is in, training or evaluation, becomes fixed",
    .group = Group::decomposition,
    .inference = false,
    .promise = Promise::bit_exact,
    .pass = write_out,
};

}  // namespace fx::rules
