// Common subexpressions and dead code, as rules: what is computed twice or for nothing goes.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kCommonSubexpression;
extern const ProgramRule kDeadCode;

}  // namespace fx::rules
