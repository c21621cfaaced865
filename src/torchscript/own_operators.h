// Operators of fxgraph's own (is_own_operator()) in TorchScript: functions, `__torch__.fxgraph.packed_lstm`.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <string_view>

#include <fxgraph/support/symbol.h>

namespace torch::jit {
struct MatchedSchema;
}

namespace fx::internal {

/// Calls such an operator's function, which is added to `unit` when it is not there. Several results are one value, a
/// tuple.
torch::jit::Value* call_own_operator(torch::jit::Graph& graph, torch::jit::CompilationUnit& unit, Symbol target,
                                     torch::jit::Graph& body, const torch::jit::MatchedSchema& arguments);

/// The operator that was saved as that function; empty for any other.
Symbol own_operator_of(std::string_view function);

}  // namespace fx::internal
