// Normalisations written out are found and called by their names: layer_norm, and rms_norm where LibTorch has it.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kRecogniseLayerNorm;
extern const ProgramRule kRecogniseRmsNorm;

}  // namespace fx::rules
