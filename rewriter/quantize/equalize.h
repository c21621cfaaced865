// Cross-layer equalization: channels between two layers are scaled so that both weights have like ranges by channel.
//
// Where layer → (relu) → layer and nothing else reads what is between, multiplying output channel i of the first by 1/s
// and input channel i of the second by s changes nothing but the ranges: s = sqrt(range of the first / range of the
// second) makes them equal. It helps weights that are quantized per tensor, and depthwise layers above all.
#pragma once

#include <cstddef>

#include <fxgraph/module/graph_module.h>

namespace fx::quantize {

/// Equalizes neighbouring layers of a flat program until the scales settle; returns the number of pairs. Clamps with an
/// upper bound (relu6) stop it: they are not homogeneous. Linear in the weights, times the rounds.
std::size_t equalize(GraphModule& flat);

}  // namespace fx::quantize
