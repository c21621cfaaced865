// How a torch::nn module of C++ is made: the expression that a generated file constructs its own with.
//
// Cost: one look-up by type. Thread-safety: as reading the module.
#pragma once

#include <torch/nn/module.h>

#include <optional>

#include <fxgraph/codegen/code.h>

namespace fx {

/// Returns type, construction and result of a module of torch::nn, `torch::nn::LSTM(torch::nn::LSTMOptions(3, 4)…)`,
/// without its path; options that have their defaults are left out. Nothing for types that are not of torch::nn and for
/// options that no source can say (a function as activation).
std::optional<CodeModule> construction_of(const torch::nn::Module& module);

}  // namespace fx
