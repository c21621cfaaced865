// Called modules become the operators that they are made of.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kInlineModules;

}  // namespace fx::rules
