// Inputs in TorchScript files, and what a program asserts of them.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <string_view>

#include <fxgraph/ir/node.h>

namespace fx::internal {

/// The value of an input. One whose type the program asks for may be of any; what reads it sees it as the type of its
/// annotation, with which alone the program goes on.
torch::jit::Value* build_input(torch::jit::Graph& graph, const Node& placeholder);

/// Whether `value`, of build_input(), is of the type. Throws Error(unsupported) where that is not asked of an input.
torch::jit::Value* build_type_question(torch::jit::Graph& graph, torch::jit::Value* value, std::string_view type);

/// `if not condition: raise AssertionError(message)`, with the message of the call `assertion`.
torch::jit::Value* build_assertion(torch::jit::Graph& graph, torch::jit::Value* condition, const Node& assertion);

}  // namespace fx::internal
