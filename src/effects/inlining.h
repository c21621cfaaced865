// Inlining: called modules written out as the graphs that they compute.
//
// Cost: linear in the result. The recursion is as deep as modules are nested.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

/// What the module at `path`, which `call` calls, computes over its own paths; null: the call stays.
using CalledBody = std::function<std::shared_ptr<const Graph>(const Node& call, const std::string& path)>;

/// A graph with calls written out, and how it stands to the one it was made from.
struct Inlined {
  Graph graph;
  NodeMap<Argument> values;      ///< what each node of the first graph became; nothing of one without a value
  NodeMap<const Node*> sources;  ///< of each node of the new graph: the node of the first that it is, or is a part of
};

/// Writes out the calls of modules of which `body` says what they compute, and those in there. Tensors become get_attr
/// nodes of their paths; a value that is one node has the call's name. Throws Error(invalid_argument) naming the call
/// that does not fit its body.
Inlined inline_calls(const Graph& graph, const CalledBody& body);

/// Asks what goes into a layer for its number of dimensions where `graph` asks what comes out of it. Layers keep that
/// number, and normalisation asks for it first of all: the value between them then has one reader, as patterns want it.
/// Nothing changes when a call in the graph may give a tensor other dimensions in place. `modules` has the weights.
void ask_inputs_for_ranks(Graph& graph, const ModuleInfo& modules);

/// Why the call cannot be one of the body, `takes 2 arguments`; empty when it can.
std::string why_misfit(const Node& call, const Graph& body);

}  // namespace fx
