// Dominators and post-dominators.
//
//   fx::Dominators dom(graph);
//   dom.dominates(a, b);     // does every path of values from an input to b lead through a?
//   dom.immediate(b);        // the last such a, b itself apart
//
// A graph has many sources (placeholders, attributes, factories): they hang from a virtual root that is no node, and
// null stands for it. For post-dominators the sinks hang from a virtual exit: the output, and every value that nothing
// uses (a dead end is a way out, so dead code weakens post-dominance; remove it first if that matters). A node
// dominates itself.
//
// One pass over the nodes in order: a node's parent is the nearest common ancestor of its inputs, found through jump
// pointers (E. W. Myers, "An applicative random-access stack", 1983). Complexity: O((nodes + uses) · log depth) to
// make, 24 bytes a node; immediate, dominates and depth are O(1), common is O(log depth). Nothing recurses.
//
// The result is a snapshot of the nodes that are there, valid until the graph is edited: of later ones, or of those of
// another graph, nothing may be asked. The graph must outlive it. Thread-safety: const functions may run on several
// threads at once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

/// What Dominators and PostDominators have in common. For PostDominators read "post-dominates" and "inputs" for
/// "users".
class DominatorTree {
 public:
  class ChildRange;
  class SubtreeRange;

  /// The nearest other dominator of `node`, or null when that is the virtual root.
  Node* immediate(const Node& node) const { return at(record(node).parent); }
  /// True when `a` dominates `b`; every node dominates itself.
  bool dominates(const Node& a, const Node& b) const {
    const Record &x = record(a), &y = record(b);
    return x.begin <= y.begin && y.begin < x.end;
  }
  /// The same, but no node strictly dominates itself.
  bool strictly_dominates(const Node& a, const Node& b) const { return &a != &b && dominates(a, b); }
  /// The nearest node that dominates both, or null when only the virtual root does.
  Node* common(const Node& a, const Node& b) const { return at(nearest_common(a.id(), b.id())); }
  /// How many nodes dominate `node`, itself included.
  std::uint32_t depth(const Node& node) const { return record(node).depth; }
  /// The nodes whose immediate dominator is `node`, in the order of the graph (post-dominators: against it).
  ChildRange children(const Node& node) const;
  /// The children of the virtual root.
  ChildRange roots() const;
  /// The nodes that `node` dominates: itself first, parents before children.
  SubtreeRange dominated(const Node& node) const;
  /// The dominance frontier: users of a node that `node` dominates, themselves not strictly dominated by it. Each once,
  /// in order of discovery. O(uses in the subtree).
  std::vector<Node*> frontier(const Node& node) const;
  /// All pairs (node, member of its frontier), sorted by the member's place in the graph. O(nodes + uses + pairs);
  /// there may be quadratically many pairs.
  std::vector<std::pair<Node*, Node*>> frontiers() const;

  /// The graph that was given, which must still be there and unchanged.
  const Graph& graph() const { return *graph_; }

 protected:
  /// @cond
  struct Record {
    std::uint32_t parent, jump, depth, begin, end;  // [begin, end): places of the subtree in preorder_
  };
  static constexpr std::uint32_t kUnset = ~std::uint32_t{0};

  DominatorTree(const Graph& graph, bool post);
  const Record& record(const Node& node) const { return records_[node.id()]; }
  Node* at(std::uint32_t id) const { return id == root_ ? nullptr : graph_->node_by_id(id); }
  std::uint32_t nearest_common(std::uint32_t a, std::uint32_t b) const;
  void attach(std::uint32_t id, std::uint32_t parent);
  void find_dominators();
  void find_post_dominators();
  void number_subtrees();
  template <typename Visit>
  void for_each_successor(Node& node, Visit&& visit) const;
  template <typename Visit>
  void for_each_predecessor(Node& node, Visit&& visit) const;

  const Graph* graph_;
  bool post_;
  std::uint32_t root_;                   // the id of the virtual root: one past the ids of nodes
  std::vector<Record> records_;          // by id
  std::vector<std::uint32_t> preorder_;  // ids; while the tree grows, in the order of attaching
  /// @endcond
};

/// Which nodes every path of values from an input to a node leads through.
class Dominators : public DominatorTree {
 public:
  /// Makes the tree of `graph` as it is now. Throws Error(lint) where a value is used before it is defined.
  explicit Dominators(const Graph& graph) : DominatorTree(graph, false) {}
};

/// `dominates(a, b)`: does every path from `b` to the output or a dead end lead through `a`?
class PostDominators : public DominatorTree {
 public:
  /// Makes the tree of `graph` as it is now, dead ends included; throws as Dominators does.
  explicit PostDominators(const Graph& graph) : DominatorTree(graph, true) {}
};

/// A contiguous piece of the preorder.
class DominatorTree::SubtreeRange {
 public:
  /// Goes forward once; the tree must outlive it.
  class iterator {
   public:
    /// As the standard library wants it of an input iterator.
    /// @{
    using value_type = Node;
    using difference_type = std::ptrdiff_t;
    using reference = Node&;
    using iterator_category = std::input_iterator_tag;
    iterator(const DominatorTree* tree, std::uint32_t place, bool skip) : tree_(tree), place_(place), skip_(skip) {}
    Node& operator*() const { return *tree_->at(tree_->preorder_[place_]); }
    iterator& operator++() {
      place_ = skip_ ? tree_->records_[tree_->preorder_[place_]].end : place_ + 1;
      return *this;
    }
    bool operator==(const iterator& other) const { return place_ == other.place_; }
    /// @}

   private:
    const DominatorTree* tree_;
    std::uint32_t place_;
    bool skip_;  // over the subtree: from child to child
  };

  /// A range for `for` loops; the nodes come as `Node&`.
  /// @{
  iterator begin() const { return {tree_, begin_, skip_}; }
  iterator end() const { return {tree_, end_, skip_}; }
  bool empty() const { return begin_ == end_; }
  /// @}

 protected:
  friend class DominatorTree;
  /// @cond
  SubtreeRange(const DominatorTree* tree, std::uint32_t begin, std::uint32_t end, bool skip)
      : tree_(tree), begin_(begin), end_(end), skip_(skip) {}
  const DominatorTree* tree_;
  std::uint32_t begin_, end_;
  bool skip_;
  /// @endcond
};

/// The children of one node of the tree, or of the virtual root.
class DominatorTree::ChildRange : public SubtreeRange {
 private:
  friend class DominatorTree;
  ChildRange(const DominatorTree* tree, std::uint32_t begin, std::uint32_t end)
      : SubtreeRange(tree, begin, end, true) {}
};

inline DominatorTree::ChildRange DominatorTree::children(const Node& node) const {
  return {this, record(node).begin + 1, record(node).end};
}
inline DominatorTree::ChildRange DominatorTree::roots() const {
  return {this, 0, static_cast<std::uint32_t>(preorder_.size())};
}
inline DominatorTree::SubtreeRange DominatorTree::dominated(const Node& node) const {
  return {this, record(node).begin, record(node).end, false};
}

}  // namespace fx
