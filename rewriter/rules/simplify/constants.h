// Constant folding: what can be computed from attributes and literals alone is computed now.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kConstantFolding;

}  // namespace fx::rules
