// Rules for a graph, cut out of it: a part of it as the pattern, and what to put there. So patterns of any form fit,
// with uses, effects and views around them as the graph has them.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include "tests/support/random.h"

namespace fx::testing {

/// A part of a graph, with placeholders for what it takes.
struct CutRule {
  Graph pattern;
  Graph replacement;
  bool same = false;  ///< the replacement is the pattern
};

/// One to five calls, or attributes, of `graph` that hang together. The replacement is them again, or with one thing
/// changed: an operator, a call left out or made twice, a result looked at through a view, the results exchanged.
CutRule cut_rule(const Graph& graph, Random& random);

}  // namespace fx::testing
