// inline_modules: a graph of operators alone, with the modules that it calls written out.
//
//   fx::Graph flat = fx::inline_modules(*gm);   // conv1 = aten::conv2d(x, conv1_weight, …) instead of a call of conv1
//
// For code generation and for analyses that want operators. Leaves with a body, C++ torch::nn modules whose computation
// is known, Sequentials and nested GraphModules are written out, in the mode (training or not) that they are in;
// tensors become get_attr nodes of their paths. Calls of anything else stay.
//
// Cost: linear in the result. Thread-safety: as the const functions of GraphModule.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <fxgraph/ir/graph.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// What modules compute, by their paths.
using ModuleBodies = std::map<std::string, std::shared_ptr<const Graph>>;

/// Returns the new graph; it runs over the same module. `others` says it of modules of which it is not known here.
/// Throws Error(invalid_argument) naming the node when a call does not fit its module.
Graph inline_modules(const GraphModule& module, const ModuleBodies& others = {});

/// The same as for a bare graph, with the weights of `module`.
void ask_inputs_for_ranks(const GraphModule& module, Graph& graph);

/// Returns what a module computes in its present mode, as a graph over its own paths; null when that is not known.
std::shared_ptr<const Graph> module_body(const std::shared_ptr<torch::nn::Module>& module);
/// The same in evaluation, whichever mode it is in.
std::shared_ptr<const Graph> evaluated_body(const std::shared_ptr<torch::nn::Module>& module);

}  // namespace fx
