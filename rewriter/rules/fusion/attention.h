// softmax(q kᵀ · scale + mask) v is found and becomes one scaled dot-product attention.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kRecogniseAttention;

}  // namespace fx::rules
