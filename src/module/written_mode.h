// What of a program depends on the mode, train() or eval(), where it is written as operators: those have a literal flag
// that no later switch reaches.
//
// Cost: linear in the graph and in the bodies of what it calls. Thread-safety: as reading the module.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <fxgraph/module/graph_module.h>

namespace fx::internal {

/// The first operator that does something else when its literal flag says that it trains: dropout, batch norm, layers
/// of an LSTM with dropout between them. Null when there is none.
const Node* find_mode_call(const Graph& graph);

/// `body` in the other mode, when all that depends on the mode is dropout; nothing when something else does, or
/// nothing at all.
std::optional<Graph> in_other_mode(const Graph& body);

/// Whether a called module is written so that it follows train() and eval().
using WrittenToFollow = std::function<bool(const torch::nn::Module& called)>;

/// Why what is written of `module` as it stands refuses the other mode: it is fixed itself, or calls something that
/// does something else there and is not written to follow. Empty when the mode may be switched.
std::string mode_of_written(const GraphModule& module, const WrittenToFollow& follows);

}  // namespace fx::internal
