// Calls of leaf modules that a graph has in the place of their operators, and whether that holds at other sizes.
//
// A leaf is known by the operators that it leaves at the examples. Where the program hands it more than the graph's
// call does (`up->forward(x, output_size)`), or calls an operator with its weights by hand, these may be the same there
// and others elsewhere.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include <fxgraph/trace/leaf_alone.h>
#include <fxgraph/trace/probe.h>

namespace fx::internal {

struct RaisedCall {
  std::string path;
  std::shared_ptr<torch::nn::Module> module;
  const ModuleType* type;
  CallInputs inputs;             ///< nodes of the trace, those of other leaves as they were before these were raised
  std::vector<Node*> operators;  ///< what it was, by now erased, in the order of the module; null for an unused getitem
  bool asks_for_sizes;           ///< the module
};

/// Tells `log` which of its calls lie inside of leaves.
void note_raised(const std::vector<RaisedCall>& calls, TraceLog& log);

/// The path of a leaf which by itself does something else than the program did with its weights in one of `samples`;
/// empty when there is none. Cost: traces leaves whose numbers are of sizes once or twice more.
std::string find_unlike_leaf(const std::vector<RaisedCall>& calls, const ProbedProgram& program,
                             const std::vector<std::unique_ptr<Probe>>& samples);

}  // namespace fx::internal
