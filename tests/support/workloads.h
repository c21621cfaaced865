// Graphs that are hard in one way each, beside the chain, fan and ladder of random_graph.h. Tests count what the
// searches and rewrites do on them, benchmarks time it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx::testing {

/// The chain, but for `alpha=2` in every add: each relu looks like relu(add(x, y)) up to the last argument.
Graph near_misses(std::size_t blocks);
/// `count` calls of transpose(x, 0, 1), one around the other: two neighbours cancel, which makes new neighbours.
Graph nested_transposes(std::size_t count);
/// `count` relus, one around the other: matches of relu(relu(x)) overlap, every one with the next.
Graph nested_relus(std::size_t count);
/// A random graph of about `nodes` nodes with the operators that vision and language models have, as often as they have
/// them, and few users a value.
Graph model_mix(std::size_t nodes);
/// A graph of tests/corpus, by file name without ending.
Graph corpus_graph(const std::string& name);

/// A copy with an unused `neg` for every third call: a quarter of a chain is dead. Fills `dead` with their number.
Graph with_dead_calls(const Graph& graph, std::size_t& dead);
/// A copy in which every relu is there twice. Fills `twins` with the number of second ones.
Graph with_twin_relus(const Graph& graph, std::size_t& twins);

/// Patterns of four or five nested calls of the chain's operators in an order that no chain has: each starts at an
/// operator that is there and fails some steps later. `count` is at most 240.
std::vector<std::string> patterns_not_in_chain(std::size_t count);
/// The same, as lists of operators from the outermost inwards, for other matchers.
std::vector<std::vector<std::string>> operators_not_in_chain(std::size_t count);

}  // namespace fx::testing
