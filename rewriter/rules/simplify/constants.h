// Constant folding: what can be computed from attributes and literals alone is computed now. Numbers that a trace has
// stored as tensors become literals, which patterns can read.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kConstantFolding;
extern const ProgramRule kLiteralOperands;

}  // namespace fx::rules
