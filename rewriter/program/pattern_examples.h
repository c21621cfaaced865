// Programs that a pattern fits, made from the pattern itself: what rules are tested on. Internal to rewriter/program.
#pragma once

#include <optional>
#include <random>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/pattern_data.h>

namespace fx::internal {

/// A graph that spells the pattern out, with one choice made by `random` wherever it leaves one: alternatives, optional
/// parts, members of sets of operators, order of operands, literals. Wildcards become placeholders of their names,
/// attributes get_attr nodes. Nothing when the pattern does not name its operators (tags, regular expressions).
std::optional<Graph> example_of(const PatternData& pattern, std::mt19937_64& random);

}  // namespace fx::internal
