// Graph: a program as an ordered list of nodes.
//
//   fx::Graph graph;
//   fx::Node& x = graph.placeholder("x");
//   fx::Node& y = graph.call_function("aten::relu", {x});
//   graph.output(y);
//
// The order of the list is the order of execution. Inputs are `placeholder` nodes at its start, the result is one
// `output` node at its end. A graph owns its nodes and may be moved, not copied: `clone()` makes a copy.
//
// Costs: making, erasing, moving and finding the order of nodes is O(1) beside their arguments; clone, lint, iteration
// are O(nodes + uses). No operation recurses over the graph. Memory: about 64 bytes a node, 32 an argument, 24
// overhead.
//
// Thread-safety: const functions may run on several threads at once; edits need the graph for themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/meta.h>
#include <fxgraph/ir/node.h>
#include <fxgraph/support/error.h>

namespace fx {

template <typename T>
class NodeMap;

/// One broken invariant: its number in docs/ir.md, the node at fault, and what is wrong.
struct LintViolation {
  int rule;             ///< its number in docs/ir.md
  std::string node;     ///< the name of the node at fault; empty when it is the graph as a whole
  std::string message;  ///< one line
};

/// A program as an ordered list of nodes, which it owns; see the top of this file.
class Graph {
 public:
  Graph();
  ~Graph();
  /// Nodes keep their addresses and hooks stay set; what was moved from is an empty graph.
  /// @{
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  /// @}

  // ── Looking ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /// The nodes in order, both ways. Erasing any node and inserting anywhere is safe while iterating.
  class NodeRange;
  /// All nodes in order; `reversed()` of the range goes backward.
  /// @{
  NodeRange nodes();
  class ConstNodeRange;
  ConstNodeRange nodes() const;
  /// @}
  /// Counts nodes, placeholders and output included. O(1).
  /// @{
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  /// @}
  /// One more than the largest Node::id(): the size of side tables.
  std::uint32_t id_bound() const;
  /// The node with this id, or null when it was erased or never existed.
  Node* node_by_id(std::uint32_t id) const;
  /// The node of this name, or null. O(nodes).
  Node* find(std::string_view name) const;
  /// The nodes with this opcode and, unless it is empty, this target, in order. O(nodes); O(1) for a target of none.
  std::vector<Node*> find_nodes(Op op, Symbol target = {}) const;
  /// How many nodes have this opcode and target, an operator in its canonical spelling. O(1).
  std::size_t count(Op op, Symbol target) const;
  /// True when `test` holds of the opcode and target of some call; it is asked about each once. O(different targets).
  bool any_called(const std::function<bool(Op, Symbol)>& test) const;
  /// The placeholders, in order. O(placeholders) where they are first, else up to the last one's place.
  std::vector<Node*> placeholders() const;
  /// The output node, or null.
  Node* output_node() const;
  /// Grows with every edit: two equal numbers mean that nothing changed between.
  std::uint64_t revision() const;
  /// Bytes of storage that the graph holds.
  std::size_t memory_bytes() const;

  // ── Building ─────────────────────────────────────────────────────────────────────────────────────────────────────
  // New nodes go to the insertion point: at first the end of the graph, before the output if there is one. `name` is a
  // candidate; without one the node is named after its target. Arguments must name nodes of this graph.
  /// Makes any kind of node. Throws Error(invalid_argument) for a second output and for arguments of another graph.
  Node& create_node(Op op, Symbol target, ArgumentSpan args = {}, KwargSpan kwargs = {}, std::string_view name = {});
  /// A new input; `*args` and `**kwargs` are named without their stars. `default_value` is taken when a caller passes
  /// none.
  Node& placeholder(std::string_view name, std::optional<Argument> default_value = std::nullopt);
  /// Fetches the parameter, buffer or constant at `path`, `layer1.0.weight`.
  Node& get_attr(Symbol path) { return create_node(Op::get_attr, path); }
  /// Calls an operator or function, `aten::relu` or `torch.relu`; operators are kept in their canonical spelling.
  Node& call_function(Symbol target, ArgumentSpan args = {}, KwargSpan kwargs = {}, std::string_view name = {}) {
    return create_node(Op::call_function, target, args, kwargs, name);
  }
  /// `args[0]` is the object whose method is called.
  Node& call_method(Symbol method, ArgumentSpan args, KwargSpan kwargs = {}, std::string_view name = {}) {
    return create_node(Op::call_method, method, args, kwargs, name);
  }
  /// Calls the submodule at `path`, `layer1.0.conv`.
  Node& call_module(Symbol path, ArgumentSpan args = {}, KwargSpan kwargs = {}, std::string_view name = {}) {
    return create_node(Op::call_module, path, args, kwargs, name);
  }
  /// Throws when the graph has an output already: pass a tuple to return several values.
  Node& output(const Argument& value);

  /// While it lives, new nodes go to another place; several keep the order in which they are made. On its end the
  /// insertion point is what it was before.
  class InsertionScope;
  /// Just before or just after `node`, a node of this graph.
  /// @{
  [[nodiscard]] InsertionScope inserting_before(Node& node);
  [[nodiscard]] InsertionScope inserting_after(Node& node);
  /// @}
  /// At the start of the graph.
  [[nodiscard]] InsertionScope inserting_before();
  /// At the end of the graph (before the output).
  [[nodiscard]] InsertionScope inserting_after();

  // ── Editing ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /// Removes a node that nothing uses; throws, naming the users, when something does. Erasing twice throws.
  void erase_node(Node& node);
  /// Undoes erase_node: `node`, erased from this graph, is back before `next` (null: at the end) under its old name,
  /// with these arguments. For journals such as the Rewriter's; the node becomes the last user of its inputs.
  void restore_node(Node& node, Node* next, ArgumentSpan args, KwargSpan kwargs);

  /// Removes every node that is neither impure nor used, in one backward pass; returns how many went. `is_impure` says
  /// which calls must stay although nothing uses them; placeholders and the output always stay.
  std::size_t eliminate_dead_code(const std::function<bool(const Node&)>& is_impure);
  /// The same with what operator schemas declare; modules go, as in torch.fx. Defined in src/effects, as
  /// fx::eliminate_dead_code, which can be told about modules.
  std::size_t eliminate_dead_code();

  // ── Copying ──────────────────────────────────────────────────────────────────────────────────────────────────────
  using ValueMap = NodeMap<Argument>;  ///< values by node: what graph_copy binds
  /// Copies `node` (of any graph) to the insertion point of this one; its arguments' nodes are replaced by `map`.
  /// Throws Error(invalid_argument) for an erased node and for an empty `map`.
  Node& node_copy(const Node& node, const std::function<Argument(Node&)>& map);
  /// Copies all nodes of `other` to the insertion point, but for those that `values` maps already to something else
  /// than None (that is how inputs are bound) and the output, whose mapped value is returned (nothing without one).
  /// Fills `values`.
  std::optional<Argument> graph_copy(const Graph& other, ValueMap& values);
  /// A copy with equal names, order and notes; ids are renumbered in order. Fills `nodes` from old to new when given.
  Graph clone(NodeMap<Node*>* nodes = nullptr) const;

  // ── Checking and printing ────────────────────────────────────────────────────────────────────────────────────────
  /// Returns every broken invariant, in node order (docs/ir.md lists them). O(nodes + uses).
  std::vector<LintViolation> check() const;
  /// Throws Error(lint) that lists all violations, numbered and with node names, when there is one.
  void lint() const;
  /// FX's table: opcode, name, target, args, kwargs.
  void print_tabular(std::ostream& out) const;
  /// The same to std::cout.
  void print_tabular() const;

 private:
  friend class Node;
  friend struct internal::GraphStorage;
  std::unique_ptr<internal::GraphStorage> storage_;
};

/// Iterates over live nodes. Standing on a node that is erased it still finds the way on.
template <typename NodeType>
class NodeIterator {
 public:
  /// What std::iterator_traits asks for.
  /// @{
  using value_type = NodeType;
  using difference_type = std::ptrdiff_t;
  using reference = NodeType&;
  using pointer = NodeType*;
  using iterator_category = std::bidirectional_iterator_tag;
  /// @}

  NodeIterator() = default;
  /// Stands at `at`; `root` is the graph's anchor, where both directions end.
  NodeIterator(Node* at, Node* root, bool reverse) : at_(at), root_(root), reverse_(reverse) {}
  /// As the standard library wants it of a bidirectional iterator; a step passes over erased nodes.
  /// @{
  reference operator*() const { return *at_; }
  pointer operator->() const { return at_; }
  NodeIterator& operator++() {
    at_ = step(at_, reverse_);
    return *this;
  }
  NodeIterator operator++(int) {
    NodeIterator old = *this;
    ++*this;
    return old;
  }
  NodeIterator& operator--() {
    at_ = step(at_, !reverse_);
    return *this;
  }
  bool operator==(const NodeIterator& other) const { return at_ == other.at_; }
  /// @}

 private:
  static Node* step(Node* node, bool backward);
  Node* at_ = nullptr;
  Node* root_ = nullptr;
  bool reverse_ = false;
};

/// What Graph::nodes() returns: a view, valid as long as the graph.
template <typename NodeType>
class NodeRangeOf {
 public:
  using iterator = NodeIterator<NodeType>;  ///< goes both ways
  /// Made by Graph::nodes(); `size` is the number of nodes now.
  NodeRangeOf(Node* root, std::size_t size, bool reverse) : root_(root), size_(size), reverse_(reverse) {}
  /// The first node in this direction. Nodes may be erased and inserted while iterating.
  iterator begin() const { return ++iterator(root_, root_, reverse_); }
  iterator end() const { return iterator(root_, root_, reverse_); }  ///< behind the last node; `--` leads to it
  std::size_t size() const { return size_; }  ///< nodes that the graph had when the range was made
  bool empty() const { return size_ == 0; }   ///< true when the graph had none then
  /// The same nodes in the other direction.
  NodeRangeOf reversed() const { return {root_, size_, !reverse_}; }
  NodeType& front() const { return *begin(); }  ///< the range must not be empty
  NodeType& back() const { return *--end(); }   ///< the range must not be empty

 private:
  Node* root_;
  std::size_t size_;
  bool reverse_;
};

/// The nodes of a graph that may be edited.
class Graph::NodeRange : public NodeRangeOf<Node> {
 public:
  using NodeRangeOf::NodeRangeOf;
};
/// The nodes of a graph that may only be read.
class Graph::ConstNodeRange : public NodeRangeOf<const Node> {
 public:
  using NodeRangeOf::NodeRangeOf;
};

/// Keeps the insertion point elsewhere while it lives; made by inserting_before and inserting_after.
class Graph::InsertionScope {
 public:
  InsertionScope(const InsertionScope&) = delete;
  InsertionScope& operator=(const InsertionScope&) = delete;
  ~InsertionScope();

 private:
  friend class Graph;
  InsertionScope(internal::GraphStorage& storage, Node* anchor, bool after);
  internal::GraphStorage& storage_;
  Node* saved_anchor_;
  bool saved_after_;
};

}  // namespace fx

#include <fxgraph/ir/graph_inl.h>
