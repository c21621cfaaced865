// Layers that oneDNN would take for each other.
//
// LibTorch keeps what oneDNN compiled for a layer under its sizes and, by output channel, scale of the input times
// scale of the weight over scale of the result. Up to LibTorch 1.13 zero points are no part of the key, though they are
// part of what was compiled: a layer that runs on x and on -x gets the first call's zero points in the second. So
// layers with equal keys and different zero points get scales of their results that differ by some parts in a million.
//
// The cache is one for the process, and so is the list of keys here. Thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>

#include <fxgraph/ir/graph.h>

namespace fx::quantize {

/// Changes the scales of results in `graph` where layers would be taken for each other. `weights`: by the path of the
/// packed parameters, the quantized weight. Linear in the layers, times the layers with weights of the same sizes.
void keep_apart(Graph& graph, const std::unordered_map<std::string, at::Tensor>& weights);

}  // namespace fx::quantize
