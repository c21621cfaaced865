// The arguments of calls of modules by name, as ops/normalize_args.h has it for operators: FX's NormalizeArgs.
//
// The names are those of the module's forward as far as it is known: the placeholders of a GraphModule or of a layer's
// body, the parameters of a scripted one. A module of C++ of its own has none; its calls stay as they are.
//
// Thread-safety: like the functions of Graph.
#pragma once

#include <cstddef>
#include <optional>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/normalize_args.h>

namespace fx {

/// FX's Node.normalized_arguments(root): of a call_module too, defaults filled in. Nothing where names are not known or
/// the call does not fit.
std::optional<NormalizedArguments> normalized_arguments(const GraphModule& module, const Node& node,
                                                        bool to_kwargs = true);

/// Gives every operator and every module all its arguments by name; returns how many calls changed. What they compute
/// stays.
std::size_t normalize_args(GraphModule& module);

}  // namespace fx
