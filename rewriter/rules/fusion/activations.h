// Activation functions written out are found and called by their names: gelu, silu, hardswish, hardsigmoid, leaky_relu.
// Sources: the formulas of LibTorch's own kernels; spellings as front ends and ONNX exporters write them.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kRecogniseGelu;
extern const ProgramRule kRecogniseSilu;
extern const ProgramRule kRecogniseHardswish;
extern const ProgramRule kRecogniseLeakyRelu;

}  // namespace fx::rules
