// What calling a module does beside computing its result, for analyses that ask about call_module nodes.
#pragma once

#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/effects.h>

namespace fx {

/// Effects of the modules that `module`'s graph calls, read from their bodies: BatchNorm in training mode writes its
/// statistics, ReLU(inplace=True) its input, Dropout in training mode draws. A leaf without a body is unknown in
/// training mode, and in both when it is not one of LibTorch's own; else pure. The result refers to `module`, which must outlive it.
ModuleEffects module_effects(const GraphModule& module);

/// For EffectsOptions::attribute_storage: the first path, in the module's order, of a parameter or buffer that shares
/// storage with the one at `path`; `path` itself when there is none. A snapshot.
std::function<Symbol(Symbol path)> attribute_storage(const GraphModule& module);

}  // namespace fx
