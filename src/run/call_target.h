// What a call's target stands for: the one answer for plans, which ask once, and for the Interpreter, which asks at
// every call.
//
//   aten::relu, torch.ops.aten.relu.default   the operator with exactly this overload
//   operator.getitem, .float                  a function of our own
//   torch.relu, aten::relu, .relu             operators whose overload the values decide
//   torch.nn.functional.relu                  operators called with other parameters: see normalized_call
#pragma once

#include <optional>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/python_calls.h>

namespace fx {

/// The first of these that is set. Nothing is set when there is no such target.
struct CallTarget {
  const TorchOperator* op = nullptr;
  const PythonFunction* function = nullptr;
  std::vector<Symbol> packets;
};

/// For call_function and call_method nodes.
CallTarget resolve_call(Op op, Symbol target);

/// A target in torch.* that no other way explains is taken for the operator of its last name: `torch.special.expit` is
/// aten::expit. Empty when there is none.
std::vector<Symbol> packets_by_last_name(Symbol target);

/// Functions of torch.nn.functional have other parameters than the operators they call: fx::normalize_operators knows
/// them. Returns the call of `node` as a graph of operators; its placeholders stand for node.all_input_nodes(). Nothing
/// when there is no such function.
std::optional<Graph> normalized_call(const Node& node);

}  // namespace fx
