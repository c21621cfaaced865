// Calls of graphs within the graph, as TorchScript: such a graph is a submodule with a forward.
#pragma once

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/named_value.h>

#include <functional>
#include <string>

#include <fxgraph/ir/graph.h>

namespace fx::internal {

using NamedValueOf = std::function<torch::jit::NamedValue(const Argument&)>;

/// The call of a higher-order operator, at the insertion point of `built`; null when there are no words for it.
torch::jit::Value* build_nested_call(torch::jit::Graph& built, Symbol target, ArgumentSpan args,
                                     const NamedValueOf& value_of);

/// The higher-order operators of `graph` for which there are no words, with commas; empty when there are none. `first`
/// is the first of them.
std::string unknown_nested_calls(const Graph& graph, const Node*& first);

}  // namespace fx::internal
