// Concatenations of one, of concatenations, and of the parts of a split.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kConcatenations;

}  // namespace fx::rules
