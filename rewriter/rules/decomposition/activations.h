// Activation functions as simpler operators.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kDecomposeRelu;
extern const ProgramRule kDecomposeSilu;
extern const ProgramRule kDecomposeGelu;
extern const ProgramRule kDecomposeHardswish;
extern const ProgramRule kDecomposeSoftmax;

}  // namespace fx::rules
