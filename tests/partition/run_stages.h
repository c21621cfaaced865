// The stages of a pipeline without processes.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/rewriter/partition/pipeline_plan.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>
#include "tests/partition/copying_part.h"

namespace fx::testing {

/// Runs the stages in one process, each given copies and giving copies: what sending does.
inline c10::IValue run_stages(const PipelineStages& stages, const std::vector<c10::IValue>& inputs) {
  const Graph wiring = parse_graph(stages.plan.wiring);
  NodeMap<c10::IValue> values(wiring);
  const auto value_of = [&](Node& node) { return values[node]; };
  std::size_t input = 0;
  for (const Node& node : wiring.nodes()) {
    if (node.is(Op::placeholder)) values[node] = input < inputs.size() ? inputs[input++] : to_ivalue(node.arg(0));
    if (node.is(Op::call_module)) {
      std::vector<c10::IValue> arguments;
      for (const Argument& argument : node.args()) arguments.push_back(copy_of(to_ivalue(argument, nullptr, value_of)));
      values[node] = copy_of(stages.modules.at(std::stoul(node.target().str().substr(6)))->run(std::move(arguments)));
    }
    if (node.is(Op::call_function))
      values[node] =
          values[node.arg(0).node()].toTupleRef().elements().at(static_cast<std::size_t>(node.arg(1).as_int()));
    if (node.is(Op::output)) return to_ivalue(node.arg(0), nullptr, value_of);
  }
  return {};
}

}  // namespace fx::testing
