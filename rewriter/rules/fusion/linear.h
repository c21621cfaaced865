// Products and sums become addmm and linear.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kRecogniseLinear;

}  // namespace fx::rules
