// OrderEdges: "this must run before that" beside the uses, such as a write before the reads that see it.
//
// A compact table of edges between nodes of one graph, made by Effects::order_edges() or by hand, read by the graph
// view and by whatever reorders nodes. It is a snapshot: nodes made later have no edges, erased nodes must not be asked
// for. Complexity: O(ids + edges) to make, O(1) to ask. Thread-safety: const functions may run on several threads at
// once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

/// `before` must run before `after`, though no value may lead from one to the other.
struct OrderEdge {
  /// Nodes of one graph; never null.
  /// @{
  Node* before;
  Node* after;
  /// @}
};

/// A table of such edges, asked by node.
class OrderEdges {
 public:
  OrderEdges() = default;
  /// Keeps the edges of each node in the order of `edges`, duplicates included. The nodes are of `graph`.
  OrderEdges(const Graph& graph, std::span<const OrderEdge> edges);

  /// The nodes that must run after `node`, in the order in which their edges were given.
  std::span<Node* const> after(const Node& node) const { return after_.of(node.id()); }
  /// The nodes that must run before `node`.
  std::span<Node* const> before(const Node& node) const { return before_.of(node.id()); }
  /// Counts edges.
  /// @{
  std::size_t size() const { return after_.nodes.size(); }
  bool empty() const { return size() == 0; }
  /// @}

 private:
  struct Table {
    std::vector<std::uint32_t> starts;  // by id, one more than the ids
    std::vector<Node*> nodes;

    std::span<Node* const> of(std::uint32_t id) const {
      if (id + 1 >= starts.size()) return {};
      return {nodes.data() + starts[id], nodes.data() + starts[id + 1]};
    }
  };
  static Table make_table(std::uint32_t ids, std::span<const OrderEdge> edges, Node* OrderEdge::*key,
                          Node* OrderEdge::*value);

  Table after_, before_;
};

}  // namespace fx
