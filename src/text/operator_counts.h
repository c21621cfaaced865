// What a program calls, and how often.
//
// Cost: O(nodes + kinds log kinds). Thread-safety: reads the graph only.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>

namespace fx {

/// One line of the table: what is called, how, and how often.
struct OperatorCount {
  std::string target;         ///< as get_node_target says it
  Op op = Op::call_function;  ///< call_function, call_method or call_module
  std::size_t count = 0;      ///< calls in the graph
  /// Member by member.
  friend bool operator==(const OperatorCount&, const OperatorCount&) = default;
};

/// What a node calls, as FX's get_node_target says it: a function as Python spells it (`torch.ops.aten.relu.default`,
/// `operator.add`), a method by its name, a module by its type, or by its path where the type is not known. Throws
/// Error(invalid_argument) for a node that calls nothing.
std::string get_node_target(const Node& node, const ModuleInfo& modules = {});

/// The calls of a program by what they call, the most frequent first, then by name.
std::vector<OperatorCount> count_operators(const Graph& graph, const ModuleInfo& modules = {});

/// The same as a table, with a line for the sum.
std::string operator_table(const Graph& graph, const ModuleInfo& modules = {});

}  // namespace fx
