// The iterators of GraphView. Included from analysis/view.h only.
#pragma once

#include <boost/iterator/iterator_facade.hpp>
#include <boost/iterator/transform_iterator.hpp>
#include <functional>
#include <vector>

#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/ir/graph.h>

namespace fx {

/// An edge of the view: `target` names `source` in `argument`, or must run after it (an order edge, `argument` is
/// null). A node that names another twice has two edges, told apart by their arguments.
struct ValueEdge {
  Node* source = nullptr;              ///< the value that is used, or what must run first
  Node* target = nullptr;              ///< the user, or what must run later
  const Argument* argument = nullptr;  ///< the argument of `target` that names `source`; null for an order edge

  /// True when it comes from OrderEdges and no value flows along it.
  bool is_order() const { return argument == nullptr; }
  /// Equal when all three members are.
  friend bool operator==(const ValueEdge&, const ValueEdge&) = default;
};

namespace internal {

template <typename Derived, typename Value>
using ViewIterator = boost::iterator_facade<Derived, Value, boost::forward_traversal_tag, Value>;

class VertexIterator : public ViewIterator<VertexIterator, Node*> {
 public:
  VertexIterator() = default;
  explicit VertexIterator(NodeIterator<const Node> at) : at_(at) {}

 private:
  friend class boost::iterator_core_access;
  // A graph that may not be changed gives its nodes as Node* too, as Graph::node_by_id does.
  Node* dereference() const { return const_cast<Node*>(&*at_); }
  void increment() { ++at_; }
  bool equal(const VertexIterator& other) const { return at_ == other.at_; }
  NodeIterator<const Node> at_;
};

/// The uses of a node in their order, then its order edges.
class OutEdgeIterator : public ViewIterator<OutEdgeIterator, ValueEdge> {
 public:
  OutEdgeIterator() = default;
  OutEdgeIterator(Node* source, UseRange::iterator use, Node* const* extra)
      : source_(source), use_(use), extra_(extra) {}

 private:
  friend class boost::iterator_core_access;
  ValueEdge dereference() const {
    if (use_ == UseRange::iterator()) return {source_, *extra_, nullptr};
    return {source_, &(*use_).user(), &(*use_).argument()};
  }
  void increment() {
    if (use_ == UseRange::iterator()) {
      ++extra_;
    } else {
      ++use_;
    }
  }
  bool equal(const OutEdgeIterator& other) const { return use_ == other.use_ && extra_ == other.extra_; }

  Node* source_ = nullptr;
  UseRange::iterator use_;
  Node* const* extra_ = nullptr;
};

/// The nodes among a node's arguments from left to right, containers included, then its order edges.
class InEdgeIterator : public ViewIterator<InEdgeIterator, ValueEdge> {
 public:
  InEdgeIterator() = default;
  InEdgeIterator(Node* target, bool at_end, Node* const* extra)
      : target_(target), next_(at_end ? target->args().size() + target->kwargs().size() : 0), extra_(extra) {
    if (!at_end) advance();
  }

 private:
  friend class boost::iterator_core_access;
  struct Level {
    ArgumentSpan::iterator at, end;
  };

  ValueEdge dereference() const {
    if (!current_) return {*extra_, target_, nullptr};
    return {current_->node_or_null(), target_, current_};
  }
  void increment() {
    if (current_) {
      advance();
    } else {
      ++extra_;
    }
  }
  bool equal(const InEdgeIterator& other) const { return current_ == other.current_ && extra_ == other.extra_; }

  void advance() {
    while ((current_ = next_argument()) != nullptr) {
      if (current_->is_node()) return;
      if (current_->is_container()) nested_.push_back({current_->elements().begin(), current_->elements().end()});
    }
  }
  const Argument* next_argument() {
    while (!nested_.empty()) {
      Level& level = nested_.back();
      if (level.at != level.end) {
        const Argument* argument = &*level.at;
        ++level.at;
        return argument;
      }
      nested_.pop_back();
    }
    const std::size_t args = target_->args().size(), i = next_++;
    if (i < args) return &target_->args()[i];
    if (i - args < target_->kwargs().size()) return &target_->kwargs().value(i - args);
    return nullptr;
  }

  Node* target_ = nullptr;
  const Argument* current_ = nullptr;
  std::size_t next_ = 0;       // position among args, then kwargs
  std::vector<Level> nested_;  // the containers being walked; empty, and so not allocated, for flat arguments
  Node* const* extra_ = nullptr;
};

inline OutEdgeIterator first_out_edge(Node* node, const OrderEdges* order) {
  return {node, node->uses().begin(), order ? order->after(*node).data() : nullptr};
}
inline OutEdgeIterator past_out_edges(Node* node, const OrderEdges* order) {
  if (!order) return {node, {}, nullptr};
  return {node, {}, order->after(*node).data() + order->after(*node).size()};
}
inline InEdgeIterator first_in_edge(Node* node, const OrderEdges* order) {
  return {node, false, order ? order->before(*node).data() : nullptr};
}
inline InEdgeIterator past_in_edges(Node* node, const OrderEdges* order) {
  if (!order) return {node, true, nullptr};
  return {node, true, order->before(*node).data() + order->before(*node).size()};
}

/// Every edge, by its source in the order of the nodes.
class EdgeIterator : public ViewIterator<EdgeIterator, ValueEdge> {
 public:
  EdgeIterator() = default;
  EdgeIterator(VertexIterator at, VertexIterator end, const OrderEdges* order) : at_(at), end_(end), order_(order) {
    enter();
  }

 private:
  friend class boost::iterator_core_access;
  ValueEdge dereference() const { return *edge_; }
  bool equal(const EdgeIterator& other) const { return edge_ == other.edge_; }
  void increment() {
    if (++edge_ == edge_end_) {
      ++at_;
      enter();
    }
  }
  void enter() {
    for (; at_ != end_; ++at_) {
      edge_ = first_out_edge(*at_, order_);
      edge_end_ = past_out_edges(*at_, order_);
      if (edge_ != edge_end_) return;
    }
    edge_ = edge_end_ = {};
  }

  VertexIterator at_, end_;
  OutEdgeIterator edge_, edge_end_;
  const OrderEdges* order_ = nullptr;
};

struct SourceOf {
  Node* operator()(const ValueEdge& edge) const { return edge.source; }
};
struct TargetOf {
  Node* operator()(const ValueEdge& edge) const { return edge.target; }
};
using AdjacencyIterator = boost::transform_iterator<TargetOf, OutEdgeIterator, Node*, Node*>;
using InvAdjacencyIterator = boost::transform_iterator<SourceOf, InEdgeIterator, Node*, Node*>;

}  // namespace internal
}  // namespace fx

template <>
struct std::hash<fx::ValueEdge> {
  std::size_t operator()(const fx::ValueEdge& edge) const {
    const std::hash<const void*> of_address;
    return edge.argument ? of_address(edge.argument) : of_address(edge.source) * 31 + of_address(edge.target);
  }
};
