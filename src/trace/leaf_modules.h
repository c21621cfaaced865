// Raising: the operators that a leaf module left in a trace become one call_module node.
//
// C++ has no hook on forward, so a trace sees through modules. Afterwards each leaf is traced alone, on what its calls
// were given, and the operators that it leaves then are looked for in the graph (trace/leaf_matcher.h). A leaf that
// computes with parameters or buffers is known by them. One without (ReLU, Dropout, pooling) is raised where its place
// says which it is: in a Sequential, after a module that was raised. Elsewhere its operators stay, which compute the
// same.
//
// Only modules that a GraphModule can call are raised: torch::nn and types registered by register_module_type.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/raised_calls.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {

/// Says whether calls of this module become one node.
using LeafPredicate = std::function<bool(const torch::nn::Module& module, const std::string& path)>;
using RaisedModules = std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>;

/// What raising has found.
struct Raised {
  RaisedModules modules;  ///< that the graph calls now, by path
  std::vector<RaisedCall> calls;
};

/// Raises all calls of leaf modules of `root` in `graph`, which `session` has just traced. Cost: each leaf is traced
/// once or a few times more.
Raised raise_leaf_modules(Graph& graph, Session& session, torch::nn::Module& root, const LeafPredicate& is_leaf);

}  // namespace fx::internal
