// Cutting a piece out of a graph.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

/// A piece of a graph as a graph of its own, and how it hangs together with what it came from.
struct Subgraph {
  Graph graph;
  std::vector<Node*> inputs;   ///< in the old graph: the value that each placeholder stands for, in order
  std::vector<Node*> outputs;  ///< in the old graph: the values that the output returns, in order
  NodeMap<Node*> copies;       ///< from the old graph's nodes to the copies; an input maps to its placeholder
};

struct ExtractOptions {
  /// Copies the get_attr nodes that the piece reads, instead of making them inputs.
  bool copy_attributes = true;
};

/// The nodes in graph order. Throws Error(invalid_argument) when one of them cannot be part of a piece: a placeholder,
/// the output, a node that is not in the graph or is there twice, null. O(nodes log nodes).
std::vector<Node*> piece_of(const Graph& graph, std::span<Node* const> nodes);

/// Copies `nodes` (any order, no doubles, no placeholder or output of the old graph) into a new graph. Values that come
/// from outside become placeholders, named and ordered as in the old graph; values used outside, or used by nothing,
/// are returned: one as it is, several as a tuple. Throws Error(invalid_argument) when the piece is not convex, because
/// no call of it could then stand in its place; see find_path_outside. O(nodes from the first to the last + their
/// uses).
Subgraph extract_subgraph(const Graph& graph, std::span<Node* const> nodes, const ExtractOptions& options = {});

/// Returns a path that leaves the set and comes back, as what convexity forbids: the node that leaves, the nodes
/// outside, the node that is reached. Nothing when the set is convex. O(nodes from the first to the last + their uses).
std::optional<std::vector<Node*>> find_path_outside(const Graph& graph, std::span<Node* const> nodes);

}  // namespace fx
