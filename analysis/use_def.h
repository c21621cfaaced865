// Questions about who uses what, near and far: slices, reachability, levels and the critical path.
//
// A node's direct inputs and users are the graph's own (Node::for_each_input, Node::users); this is what follows from
// them. Slices follow values only: a write in place that is not an input of what reads it is not found. Give the order
// edges of Effects to follow those as well.
//
// Nothing recurses. Results are snapshots, valid until the graph is edited. Thread-safety: const functions and free
// functions may run on several threads at once; Reachability keeps scratch space and belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

/// Everything that `roots` are computed from, themselves included, in graph order. O(nodes before the last root + their
/// uses).
std::vector<Node*> backward_slice(const Graph& graph, std::span<Node* const> roots, const OrderEdges* order = nullptr);
/// Everything computed from `roots`, themselves included, in graph order. O(nodes after the first root + their uses).
std::vector<Node*> forward_slice(const Graph& graph, std::span<Node* const> roots, const OrderEdges* order = nullptr);

/// For one node, without braces or arrays.
inline std::vector<Node*> backward_slice(Node& root, const OrderEdges* order = nullptr) {
  Node* roots[] = {&root};
  return backward_slice(root.graph(), roots, order);
}
/// Everything computed from `root`, itself included.
inline std::vector<Node*> forward_slice(Node& root, const OrderEdges* order = nullptr) {
  Node* roots[] = {&root};
  return forward_slice(root.graph(), roots, order);
}

/// Answers "is there a path of values from a to b?".
///
///   fx::Reachability reach(graph);
///   if (reach(a, b)) …
///
/// A search backward from `b` that stops at nodes before `a` in the order, and at nodes whose longest path from an
/// input is not longer than that of `a`. Complexity: O(nodes + uses) to make; a question costs at most the uses between
/// `a` and `b`, and O(1) when the order or the levels deny it.
class Reachability {
 public:
  /// Levels are computed now; `graph` and `order` must outlive this and stay as they are.
  explicit Reachability(const Graph& graph, const OrderEdges* order = nullptr);

  /// True when `b` is computed from `a`, or is `a`.
  bool operator()(const Node& a, const Node& b);
  /// How many nodes the last question looked at.
  std::size_t visited() const { return visited_; }

 private:
  const OrderEdges* order_;
  std::vector<std::uint32_t> level_;  // by id
  std::vector<std::uint64_t> stamp_;  // by id: the last question that came there
  std::uint64_t question_ = 0;
  std::vector<const Node*> stack_;
  std::size_t visited_ = 0;
};

/// The length of the longest path to each node, in nodes: 0 where there are no inputs. O(nodes + uses).
NodeMap<std::uint32_t> levels(const Graph& graph, const OrderEdges* order = nullptr);

/// A most expensive path, of several one that ends first, and how much each node may be delayed before the whole takes
/// longer.
struct CriticalPath {
  std::vector<Node*> nodes;  ///< in order
  double length = 0;         ///< the sum of their costs
  NodeMap<double> slack;     ///< 0 on every most expensive path
};

/// `cost(node)` must not be negative; without it each node counts 1. O(nodes + uses).
CriticalPath critical_path(const Graph& graph, const std::function<double(const Node&)>& cost = {},
                           const OrderEdges* order = nullptr);

}  // namespace fx
