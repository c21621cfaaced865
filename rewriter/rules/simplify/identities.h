// Arithmetic that does nothing, twice the same, or can be done at once.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kIdentityArithmetic;
extern const ProgramRule kInversePairs;
extern const ProgramRule kDivisionByConstant;
extern const ProgramRule kConstantArithmetic;
extern const ProgramRule kCasts;

}  // namespace fx::rules
