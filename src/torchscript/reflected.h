// Python operators with a number on the left: `1 - x`.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <fxgraph/support/symbol.h>

namespace fx::internal {

/// Errors of LibTorch's schema matcher point into a source text, so there must be one.
const torch::jit::SourceRange& no_source();

/// Emits `packet(number, tensor)` as Python computes it, with the tensor's reflected operator (`aten::rsub` for
/// `aten::sub`): TorchScript's own choice for these operands would turn the tensor into a number. Null when the
/// operands are others, or an overload takes them as they are (`aten::pow.Scalar`).
torch::jit::Value* build_reflected(torch::jit::Graph& graph, Symbol packet, torch::jit::Value* left,
                                   torch::jit::Value* right);

}  // namespace fx::internal
