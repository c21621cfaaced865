// What a call of a leaf module computes for any size of its inputs: its forward, traced anew with them alone.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {

/// Makes a body (module/traced_body.h) on demand: null when the module cannot be traced alone.
using GenericBody = std::function<std::shared_ptr<const Graph>()>;

/// The body of `call`, whose inputs are nodes of `session` and tuples of them. Empty when these do not tell how to
/// trace it. The module is traced when the function is called.
GenericBody generic_body(const std::shared_ptr<torch::nn::Module>& leaf, const ModuleType& type, const Node& call,
                         const Session& session);

}  // namespace fx::internal
