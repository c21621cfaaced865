// Source partitions: the nodes of a graph, grouped by the module or function that they come from.
//
//   for (const fx::SourcePartition& linear : fx::source_partitions(graph, {"Linear", fx::match::re("torch.*linear")}))
//     std::cout << linear.name << " has " << linear.nodes.size() << " nodes\n";
//
// Where a node comes from is, the first that is there: the last of its notes meta_key::kSourceFn; of a call_module the
// module that it calls; the module whose path meta_key::kModuleStack holds; of other calls what they call.
//
// Everything comes in graph order. Cost: O(nodes and uses). Thread-safety: reads the graph only.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/targets.h>

namespace fx {

/// The calls of modules and functions that a node came from, innermost last, each with a name of its own and the type
/// of module or the function that is called.
using SourceFnStack = std::vector<std::pair<std::string, std::string>>;

namespace meta_key {
inline constexpr const char* kSourceFn = "source_fn_stack";  ///< SourceFnStack
}

/// One call of a module or function.
struct SourcePartition {
  std::string name;                 ///< of this call: a note's name, the path of a module, the name of a node
  std::string source;               ///< the type of module or the function
  std::vector<Node*> nodes;         ///< in graph order
  std::vector<Node*> input_nodes;   ///< what they use from outside, attributes left out
  std::vector<Node*> output_nodes;  ///< those that are used outside
  std::vector<Node*> params;        ///< the attributes that they use
};

/// What is known of modules, and which nodes count.
struct SourceOptions {
  /// What is known of modules; where their types are not, a module's source is its path.
  ModuleInfo modules{};
  /// Nodes for which it says no are in no partition.
  std::function<bool(const Node&)> filter{};
};

/// The partitions whose source is among `wanted`, by its whole name or the last part of it, in the order of their first
/// nodes.
std::vector<SourcePartition> source_partitions(const Graph& graph, const TargetSet& wanted,
                                               const SourceOptions& options = {});

/// True when a node of `b` uses a node of `a`.
bool are_connected(const SourcePartition& a, const SourcePartition& b);

}  // namespace fx
