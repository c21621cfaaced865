// The generators of random graphs, patterns and edits draw from this.
#pragma once

#include <fxgraph/support/random.h>

namespace fx::testing {

using internal::Random;

}  // namespace fx::testing
