// A graph for Graphviz, drawn as one likes: FX's FxGraphDrawer with its options.
//
//   fx::print_dot(graph, {.ignore_getattr = true, .arguments = true, .shapes = &shapes});
//
// Cost: linear in the text written. Thread-safety: like the const functions of Graph.
#pragma once

#include <functional>
#include <string>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// What is drawn, and how.
struct DotOptions {
  std::string name = "graph_";          ///< of the digraph
  bool ignore_getattr = false;          ///< reads of parameters and buffers are left out
  bool arguments = false;               ///< the arguments of calls are written
  bool skip_node_names_in_args = true;  ///< … as `_` where they are nodes, which the edges show
  bool parse_stack_trace = false;       ///< the line of the program that made the node is written (meta "stack_trace")
  std::string shape = "record";         ///< dot_graph_shape; names other than "record" and "Mrecord" get plain labels
  const Shapes* shapes = nullptr;       ///< dtypes and sizes are written
  /// The colour of a node, as Graphviz names it; an empty one stands for the opcode's.
  std::function<std::string(const Node& node)> colour{};
};

/// A digraph: a record per node (name, opcode, target, annotation and what the options ask for), an edge per use.
std::string print_dot(const Graph& graph, const DotOptions& options);

}  // namespace fx
