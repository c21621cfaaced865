// Folds batch normalisation into the convolution or linear layer before it, or the linear layer after it, for
// inference.
//
//   after:    W' = W · gamma / sqrt(var + eps)   (along the output channels)
//             b' = (b - mean) · gamma / sqrt(var + eps) + beta
//   before:   W' = W · scale (along the inputs), b' = W shift + b, where the norm computes x · scale + shift
//
// A missing gamma is 1, a missing beta 0, a missing bias 0. Computed in float64 and rounded to the type of the weight.
//
// conv1d, conv2d, conv3d and their transposes, with groups, and linear, as modules (call_module of a leaf) or as
// operators on attributes, in any mixture. Weights that something else uses too are left alone: the folded operation
// gets its own.
//
// Source: the standard identity; preconditions after what quantisation front ends and ONNX optimisers check.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kFuseConvBn;
extern const ProgramRule kFuseLinearBn;
extern const ProgramRule kFuseBnLinear;

}  // namespace fx::rules
