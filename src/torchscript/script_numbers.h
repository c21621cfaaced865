// Numbers in TorchScript files, whose text does not say all of them: floats from 1e10 on have no point in it and are
// read as ints, -0.0 as 0.0, and the power of two ints is a float there.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <fxgraph/ir/node.h>
#include <fxgraph/torchscript/nested_calls.h>

namespace fx::internal {

/// True for a float, or a container of one, that a file would give back as something else.
bool is_misread(const c10::IValue& value);

/// The literal as a constant, what would be misread as the call `float("…")`. `type` is what is expected, or null.
torch::jit::Value* insert_literal(torch::jit::Graph& graph, const Argument& argument, const c10::TypePtr& type);

/// `value` where a float, a Scalar or a tensor is expected: a float of a whole number, what insert_literal() makes of a
/// bool, what an optional one holds.
torch::jit::Value* as_wanted(torch::jit::Graph& graph, torch::jit::Value* value, const c10::TypePtr& type);

/// Python's `a ** b` of two ints, as products; null for other calls. Throws Error(unsupported) where the exponent is no
/// literal, which decides between int and float.
torch::jit::Value* build_int_pow(torch::jit::Graph& graph, const Node& node, const NamedValueOf& value_of);

}  // namespace fx::internal
