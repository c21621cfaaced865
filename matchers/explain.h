// explain: why a pattern does not fit at a node, in words.
//
//   relu_4 <- add_2 <- conv2d_9: wants one use of conv2d_9, it has two (add_2, cat_1)
//
// The path goes from the pattern's result to the place where the comparison that came furthest failed; then what the
// pattern wants there and what the graph has. near_misses does the same over the whole graph and groups equal reasons.
//
// A search that is not asked to explain pays nothing for this: the explanation is made by running it again.
#pragma once

#include <cstddef>
#include <string>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern.h>

namespace fx {

/// Says why the pattern's first result cannot be `node`, or that it can and what is bound. One line.
std::string explain(const Graph& graph, const Pattern& pattern, const Node& node, const FindOptions& options = {});

/// Says where the pattern nearly fits: for each reason a line with how often it is met, and one for each further
/// obstacle there; those with the fewest obstacles first, at most `lines`, and for each the first five places. Also
/// says when an operator that the pattern needs is not in the graph at all.
std::string near_misses(const Graph& graph, const Pattern& pattern, const FindOptions& options = {},
                        std::size_t lines = 10);

}  // namespace fx
