// Chains of permutations, transpositions, reshapes and squeezes.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kPermutations;
extern const ProgramRule kReshapes;
extern const ProgramRule kSqueezes;
extern const ProgramRule kFullSlices;

}  // namespace fx::rules
