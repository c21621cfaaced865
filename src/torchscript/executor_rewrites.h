// What LibTorch's executor changes of a method that it optimises, and how a method is written so that it does not: what
// is written to stays as it is. Thread-safety: no state.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/node.h>

namespace fx::internal {

/// Whether no input and no tensor decides the value: the executor makes one constant of it for all calls. Linear in
/// what it is computed of.
bool is_constant_result(const Node& node, const ModuleInfo& modules);

/// The same tensor in memory of its own, in each call.
torch::jit::Value* made_anew(torch::jit::Graph& graph, torch::jit::Value* value);

/// The result of `call`; where the executor would put the input in its place (`x + 0`, `x * 1`), whatever type and sign
/// the operator makes of it, one that is written.
torch::jit::Value* written_if_left_out(torch::jit::Graph& graph, torch::jit::Node* call);

/// Writes once more what is joined twice by aten::cat, where its parts are written meanwhile: the executor would join
/// them at once, as they are afterwards.
void keep_joined_parts(const std::shared_ptr<torch::jit::Graph>& graph);

/// Of a call that was written by these functions, the value that stands for its result in a graph; else null.
const torch::jit::Value* written_value(const torch::jit::Node& call);

}  // namespace fx::internal
