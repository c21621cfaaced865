// What does nothing when a program is run for its result: dropout in evaluation, clone, detach, alias, identities.
#pragma once

#include "rewriter/rules/rules.h"

namespace fx::rules {

extern const ProgramRule kDropNoOps;
extern const ProgramRule kIdentityModules;

}  // namespace fx::rules
