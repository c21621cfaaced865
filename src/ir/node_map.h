// NodeMap<T>: a side table over the nodes of one graph, indexed by Node::id().
//
// Analyses keep their results here, never in the node. Reading a node that was made after the table reads the default.
// Writing to such a node may move the table: `map[made] = map[node]` reads a reference that the left side has ended,
// where T is more than a number or a pointer; copy what is read first.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

/// A value for each node of a graph; see the top of this file.
template <typename T>
class NodeMap {
 public:
  NodeMap() = default;  ///< an empty table, with T() for every node
  /// A table of `graph` as it is now, with `initial` for every node, newer ones included.
  explicit NodeMap(const Graph& graph, T initial = T())
      : initial_(std::move(initial)), values_(graph.id_bound(), initial_) {}

  /// The value of `node`; grows the table when the node is newer than it.
  typename std::vector<T>::reference operator[](const Node& node) {
    if (node.id() >= values_.size()) values_.resize(node.id() + 1 + values_.size() / 2, initial_);
    return values_[node.id()];
  }
  /// The value of `node`; the initial value for a node that is newer than the table.
  typename std::vector<T>::const_reference operator[](const Node& node) const {
    return node.id() < values_.size() ? values_[node.id()] : initial_const();
  }
  /// How many ids the table covers; grows when newer nodes are written.
  std::size_t size() const { return values_.size(); }

 private:
  typename std::vector<T>::const_reference initial_const() const { return initial_; }
  T initial_{};
  std::vector<T> values_;
};

}  // namespace fx
