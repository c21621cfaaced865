// Linear layers on one input become one, split afterwards: the projections of an attention to query, key and value.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kMergeLinears;

}  // namespace fx::rules
