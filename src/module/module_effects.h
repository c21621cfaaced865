// What calling a module does beside computing its result, for analyses that ask about call_module nodes.
#pragma once

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// Effects of the modules that `module`'s graph calls, read from their bodies: BatchNorm in training mode writes its
/// statistics, ReLU(inplace=True) its input, Dropout in training mode draws. A leaf without a body is unknown in
/// training mode, and in both when it is not one of LibTorch's own; else in place or pure. Also which tensors are tied
/// (one tensor under two paths, or a view of it), and which tensors a module holds: a snapshot, taken when it is first
/// asked for. The result refers to `module`, which must outlive it; it belongs to one thread.
ModuleEffects module_effects(const GraphModule& module);

}  // namespace fx
