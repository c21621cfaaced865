// From an fx::Graph to the TorchScript IR of one method.
#pragma once

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <memory>
#include <string>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>

namespace fx::internal {

/// Which method a call_module of that path calls.
using MethodOf = std::function<std::string(const std::string& path)>;

/// Returns the IR of a method `forward(self, …)` on `self_type` that computes `graph`. Attributes and submodules that
/// the graph names must be in the type already. Overloads without one in the graph are picked by the types of the
/// values. Throws Error(unsupported) that names the node for what TorchScript cannot say.
std::shared_ptr<torch::jit::Graph> build_method(const fx::Graph& graph, const c10::ClassTypePtr& self_type,
                                                const MethodOf& method_of, const ModuleInfo& modules = {});

/// Emits Python's `base[index]`. `emit(name, inputs…)` semantics as for operators.
torch::jit::Value* build_getitem(torch::jit::Graph& graph, torch::jit::Value* base, const Argument& index,
                                 const std::function<torch::jit::Value*(Node&)>& value_of);

}  // namespace fx::internal
