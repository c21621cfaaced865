// How a module is made: the expressions that generated files construct theirs with, from its type's row and its
// hyper-parameters.
//
// Cost: one look-up by type. Thread-safety: as reading the module.
#pragma once

#include <torch/nn/module.h>

#include <optional>

#include <fxgraph/codegen/code.h>

namespace fx {

/// Returns type, constructions and result of a module, `torch::nn::LSTM(torch::nn::LSTMOptions(3, 4)…)`, without its
/// path; hyper-parameters that have their defaults are left out. Nothing for types whose row does not say what they are
/// made with and for what no source can say (a function as activation).
std::optional<CodeModule> construction_of(const torch::nn::Module& module);

/// What forward returns, of a TorchScript leaf by its Python type; nothing where that is not known.
std::optional<CodeModule::Result> result_of(const torch::nn::Module& module);

}  // namespace fx
