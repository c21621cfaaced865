// Scaled dot-product attention as products and a softmax.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kDecomposeAttention;

}  // namespace fx::rules
