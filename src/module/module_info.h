// What is known of the modules and tensors of a program, and analyses of programs that use it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/analysis/dead_code.h>
#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/legalize.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/effects/module_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/text/operator_counts.h>

namespace fx {

/// What is known of the modules that `module`'s graph calls. Effects are read from their bodies: BatchNorm in training
/// mode writes its statistics, ReLU(inplace=True) its input, Dropout in training mode draws. A leaf without a body does
/// what its row says (ModuleRow::effects); else it is unknown where training makes another of it, and in both modes
/// when it is not one of LibTorch's own. Which tensors are tied (one tensor under two paths, or a view of it), and
/// which a module holds, is a snapshot, taken when it is first asked for. The result refers to `module`, which must
/// outlive it; it belongs to one thread.
ModuleInfo module_info(const GraphModule& module);

/// Passes and questions of graphs, with what is known of the program's modules: see those for a Graph. Effects,
/// Liveness, DeadCode and Cost are made of a GraphModule themselves.
/// @{
std::size_t eliminate_dead_code(GraphModule& module);
std::size_t legalize_graph(GraphModule& module);
std::string get_node_target(const GraphModule& module, const Node& node);
std::vector<OperatorCount> count_operators(const GraphModule& module);
std::string operator_table(const GraphModule& module);
/// @}

}  // namespace fx
