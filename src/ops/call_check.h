// What cannot be called, in words: names that are no operator, and arguments that no overload takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

/// Why nothing can be called by a name or with certain arguments.
struct CallProblem {
  std::string message;             ///< one line, with the nearest name that there is
  Symbol name;                     ///< what cannot be called
  std::string node{};              ///< where it is called, in a graph
  bool foreign_namespace = false;  ///< the namespace is none of LibTorch's: somebody else may know it
};

/// True for functions of Python's whose meaning or effects are known: `torch.relu`, `operator.getitem`. O(1).
bool is_known_function(Symbol target);

/// Why no function or method goes by this name; nothing when one does, or when it is a function of Python's that lies
/// outside of torch. Without LibTorch in the process the built-in list decides. O(operators) for a name that is
/// unknown.
std::optional<CallProblem> unknown_name(Op op, Symbol target);

/// The same, and why no overload takes the arguments of the call.
std::optional<CallProblem> call_problem(const Node& node);

/// Those of all calls of a graph, in order.
std::vector<CallProblem> call_problems(const Graph& graph);

/// True when LibTorch, or another source, says which operators there are.
bool has_schema_source();

}  // namespace fx
