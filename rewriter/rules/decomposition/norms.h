// Normalisations as means, differences and products.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kDecomposeBatchNorm;
extern const ProgramRule kDecomposeLayerNorm;
extern const ProgramRule kDecomposeGroupNorm;

}  // namespace fx::rules
