// Operators of newer LibTorch releases, for older ones, those that Python alone has (quantized_decomposed), and
// fxgraph's own.
//
// A program that was exported by PyTorch 2.x calls `aten::scaled_dot_product_attention` or `aten::rms_norm`, which 1.13
// has not got. They are registered with their schemas and computed from operators that 1.13 has, with gradients, so
// that such a program loads, runs, trains and is analysed like any other. A LibTorch that has an operator keeps its
// own.
//
// Where several copies of fxgraph are in one process (plugins, each linked with the static libraries), the first
// registers them for all; each copy knows their sources. A copy that has registered something stays in memory until the
// process ends, also after dlclose().
//
// Each is TorchScript source, so that what is saved as TorchScript can carry it along: see missing_operator_body().
#pragma once

#include <memory>

#include <fxgraph/support/symbol.h>

namespace torch::jit {
struct Graph;
}

namespace fx {

/// Registers what this LibTorch lacks. Idempotent; called by find_torch_operator. Thread-safe.
void install_missing_operators();

/// What an operator computes that LibTorch lacks, as TorchScript's graph of its parameters and one result (a tuple for
/// several); null for one that LibTorch has.
std::shared_ptr<torch::jit::Graph> missing_operator_body(Symbol target);

/// True for an operator of fxgraph's namespace. What it computes may loop, so that it is saved as a function.
bool is_own_operator(Symbol target);

}  // namespace fx
