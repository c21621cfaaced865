// Graphs of whatever operators the registry has, with arguments that fit their declarations.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/ops/schema.h>
#include "tests/support/random.h"

namespace fx::testing {

/// A value for an argument of a type; null where only its default will do.
std::optional<Argument> value_for(const SchemaType& type, const std::vector<Node*>& tensors, Random& random);

/// So many calls, of a few operators that are neighbours by name and a few others: positional and keyword arguments,
/// optional ones left out or given, several results taken apart. The same seed gives the same graph on every platform.
Graph graph_of_any_operators(std::uint64_t seed, std::size_t calls);

/// Tensors of one shape for most of the values, of others for some, of none for a few.
Shapes any_shapes(const Graph& graph, std::uint64_t seed);

}  // namespace fx::testing
