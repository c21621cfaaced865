// A leaf's trace as a graph over the leaf's own tensors.
#pragma once

#include <torch/nn/module.h>

#include <optional>

#include <fxgraph/ir/graph.h>
#include <fxgraph/module/traced_body.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {

/// `alone` is the trace of `leaf`, whose get_attr nodes have paths from the root of `session`: a copy with paths from
/// the leaf. Nothing when it computes with a tensor that is not the leaf's. Linear in the trace and the leaf's tensors.
std::optional<Graph> body_of_leaf(const Graph& alone, const Session& session, const torch::nn::Module& leaf);

}  // namespace fx::internal
