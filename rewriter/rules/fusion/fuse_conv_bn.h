// Folds batch normalisation into the convolution before it, for inference.
//
//   W' = W · gamma / sqrt(var + eps)   (along the output channels)
//   b' = (b - mean) · gamma / sqrt(var + eps) + beta
//
// A missing gamma is 1, a missing beta 0, a missing convolution bias 0. Computed in float32 (float64 for float64
// weights) and rounded to the type of the convolution's weight.
//
// conv1d, conv2d, conv3d and their transposes, with groups, as modules (call_module of a leaf) or as operators on
// attributes, in any mixture. Weights that something else uses too are left alone: the folded convolution gets its own.
//
// Source: the standard identity; preconditions after what quantisation front ends and ONNX optimisers check.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kFuseConvBn;

}  // namespace fx::rules
