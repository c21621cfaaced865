// linear and addmm as products and sums.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kDecomposeLinear;
extern const ProgramRule kDecomposeAddmm;

}  // namespace fx::rules
