// Programs that a pattern fits, made from the pattern itself: what rules are tested on. Internal to this library.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/pattern_data.h>

namespace fx::internal {

/// A graph that spells the pattern out, with one choice made by `random` wherever it leaves one: alternatives, optional
/// parts, members of sets of operators, order of operands, literals. Wildcards become placeholders of their names,
/// attributes get_attr nodes. Nothing when the pattern does not name its operators (tags, regular expressions).
std::optional<Graph> example_of(const PatternData& pattern, std::mt19937_64& random);

/// The sizes that names such as `N` in `x: f32[N, 3]` stand for in one program, by the symbol's id.
using NamedSizes = std::map<std::uint32_t, std::int64_t>;

/// Sizes of an input or attribute of such a program where the pattern says all of them; nothing where it does not.
std::optional<std::vector<std::int64_t>> example_sizes(const PatternData& pattern, const Node& value, NamedSizes& named,
                                                       std::mt19937_64& random);

}  // namespace fx::internal
