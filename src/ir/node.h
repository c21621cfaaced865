// Node: one operation in a Graph, and the value that it makes.
//
// A node has an opcode, a target, args, kwargs, a name, and users: the nodes that name it among their arguments. Nodes
// belong to a graph, are made and erased by it, and keep their address for life; `id()` is a dense number for side
// tables (NodeMap).
//
// Costs: order questions, relinking and user counts are O(1); changing arguments costs the arguments of the node
// changed. Nothing here depends on the size of the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/namespace.h>
#include <fxgraph/ir/target.h>

namespace fx {

class Graph;
class Meta;

/// FX's opcodes.
enum class Op : std::uint8_t { placeholder, get_attr, call_function, call_method, call_module, output };

/// Returns the opcode's name: `call_function`.
std::string_view to_string(Op op);
/// Prints the opcode's name.
std::ostream& operator<<(std::ostream& out, Op op);

/// Iterates over the distinct users of a node, in the order in which they first used it.
class UserRange;
/// Iterates over every use of a node: an argument slot that names it.
class UseRange;

/// One operation and its value; made by a Graph, never copied. See the top of this file.
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Which of FX's six kinds of node it is.
  Op op() const { return op_; }
  /// What is called or fetched: an operator (`aten::add.Tensor`), a method, an attribute or module path, an input's
  /// name.
  Symbol target() const { return target_; }
  /// A view of what is passed by position, or by keyword; valid until the arguments change.
  /// @{
  ArgumentSpan args() const;
  KwargSpan kwargs() const;
  /// @}
  /// The positional argument `i`. Throws Error(invalid_argument) when there are not that many.
  const Argument& arg(std::size_t i) const;
  /// The keyword argument `name`, or null.
  const Argument* kwarg(Symbol name) const { return kwargs().find(name); }

  /// The name, unique in the graph. O(length); see append_name to avoid the copy.
  std::string name() const { return name_parts().str(); }
  /// The name as stem and number: no allocation.
  NodeName name_parts() const;
  /// Appends what name() returns.
  void append_name(std::string& out) const { name_parts().append_to(out); }

  /// A number that no other node of the graph ever has; below Graph::id_bound().
  std::uint32_t id() const { return id_; }
  /// The graph that made it.
  /// @{
  Graph& graph();
  const Graph& graph() const;
  /// @}
  /// True once the graph has erased the node. Its address stays valid, its arguments and users are gone.
  bool is_erased() const { return erased_; }

  /// The same as `this->op() == op`.
  bool is(Op op) const { return op_ == op; }
  /// True for what calls something: call_function, call_method, call_module (FX's CALLABLE_NODE_OPS).
  bool is_callable() const { return op_ == Op::call_function || op_ == Op::call_method || op_ == Op::call_module; }
  /// True for a call_function of this operator, in any spelling that canonical_target knows.
  bool is_call(Symbol target) const { return op_ == Op::call_function && target_ == canonical_target(target); }

  // Order. The list of nodes is the order of execution.
  Node* next() const;      ///< null at the end
  Node* previous() const;  ///< null at the start
  /// True when it runs before `other`, a node of the same graph; false of a node and itself. O(1).
  bool is_before(const Node& other) const { return order_ < other.order_; }
  /// Moves `node` to just before this node (FX's prepend). Uses and users do not change.
  void prepend(Node& node);
  /// Moves `node` to just after this node.
  void append(Node& node);

  // Users and inputs.
  /// Distinct nodes, each counted once however often it names this one.
  /// @{
  std::uint32_t num_users() const { return num_users_; }
  bool has_users() const { return num_users_ != 0; }
  /// @}
  /// The nodes that name this one, each once.
  UserRange users() const;
  /// Every argument that names this node; a user that names it twice comes twice.
  UseRange uses() const;
  /// The distinct nodes among the arguments: args first, then kwargs, left to right.
  std::vector<Node*> all_input_nodes() const;
  /// Calls `visit(Node&)` for every node among the arguments, once per occurrence, in that order. Allocates nothing.
  template <typename Visit>
  void for_each_input(Visit&& visit) const;

  // Edits. Arguments may name nodes of this graph only. Each re-registers this node's uses: it becomes the last user of
  // its inputs, as in FX.
  /// Replaces all arguments of that kind; `set_args_kwargs` replaces both at once.
  /// @{
  void set_args(ArgumentSpan args);
  void set_kwargs(KwargSpan kwargs);
  void set_args_kwargs(ArgumentSpan args, KwargSpan kwargs);
  /// @}
  /// Replaces the argument at position `i`. Throws Error(invalid_argument) when there is none.
  void update_arg(std::size_t i, const Argument& value);
  /// Replaces the argument of that keyword, or adds it behind the others.
  void update_kwarg(Symbol name, const Argument& value);
  /// Inserts before position `i`, 0 ≤ i ≤ number of args.
  void insert_arg(std::size_t i, const Argument& value);
  /// Calls or fetches something else; an operator's spelling is made canonical. The name stays.
  void set_target(Symbol target);
  /// The same with another opcode: a method call that becomes a function call. Both must be call opcodes.
  void set_target(Op op, Symbol target);
  /// Gives the node a fresh name made from `candidate`, which is kept when free.
  void rename(std::string_view candidate);

  /// Makes every user of this node that `only` accepts use `replacement` instead; returns the users changed, in order.
  /// Throws when that would make `replacement` its own input: leave it out with `fx::except(replacement)`.
  std::vector<Node*> replace_all_uses_with(Node& replacement, const std::function<bool(const Node&)>& only = {});
  /// The same with a value that may be a literal.
  std::vector<Node*> replace_all_uses_with(const Argument& replacement,
                                           const std::function<bool(const Node&)>& only = {});
  /// The same for all users at once, without listing them: `replacement` is a node of this graph that does not use this
  /// one.
  void move_uses_to(Node& replacement);
  /// Makes this node use `replacement` wherever it used `old`.
  void replace_input_with(Node& old, Node& replacement);

  /// Free-form notes about the node (source, module path, annotation), kept beside the graph; made on first use.
  Meta& meta();
  /// The notes, or null when there are none.
  const Meta* find_meta() const;

 private:
  friend class Graph;
  friend class UserRange;
  friend class UseRange;
  friend struct internal::GraphStorage;
  template <typename NodeType>
  friend class NodeIterator;
  Node() = default;

  // 64 bytes: one cache line. Names and notes live beside it.
  Node* previous_ = nullptr;
  Node* next_ = nullptr;
  std::uint64_t order_ = 0;
  internal::GraphStorage* storage_ = nullptr;
  internal::ArgumentBlock* arguments_ = nullptr;
  internal::Slot* last_use_ = nullptr;  // uses are a ring: last_use_->next is the first
  std::uint32_t num_users_ = 0;
  std::uint32_t id_ = 0;
  Symbol target_;
  Op op_ = Op::placeholder;
  bool erased_ = false;
  std::uint16_t num_kwargs_ = 0;
};

static_assert(sizeof(Node) == 64);

/// For replace_all_uses_with: every user but these.
template <typename... Nodes>
auto except(const Nodes&... nodes) {
  return [... excluded = &nodes](const Node& user) { return ((&user != excluded) && ...); };
}

/// Prints the name.
std::ostream& operator<<(std::ostream& out, const Node& node);

namespace internal {
template <bool FirstOnly>
class UseIterator;
}

/// One use of a node: argument `argument()` of `user()` names it.
class Use {
 public:
  /// The node whose arguments it is among.
  Node& user() const { return *slot_->user(); }
  /// The argument itself: this node, as it stands in the user's args or kwargs.
  const Argument& argument() const { return slot_->value; }
  /// True for one use of each distinct user.
  bool is_first() const { return slot_->is_first_use(); }

 private:
  template <bool FirstOnly>
  friend class internal::UseIterator;
  explicit Use(internal::Slot* slot) : slot_(slot) {}
  internal::Slot* slot_;
};

namespace internal {

/// Walks a ring of uses once; with FirstOnly, only the uses that stand for their user.
template <bool FirstOnly>
class UseIterator {
 public:
  using value_type = std::conditional_t<FirstOnly, Node, Use>;
  using difference_type = std::ptrdiff_t;
  using reference = std::conditional_t<FirstOnly, Node&, Use>;
  using iterator_category = std::input_iterator_tag;

  UseIterator() = default;
  explicit UseIterator(Slot* last) : last_(last), at_(last ? last->next : nullptr) { skip(); }
  reference operator*() const {
    if constexpr (FirstOnly) {
      return *at_->user();
    } else {
      return Use(at_);
    }
  }
  UseIterator& operator++() {
    step();
    skip();
    return *this;
  }
  bool operator==(const UseIterator& other) const { return at_ == other.at_; }

 private:
  void step() { at_ = at_ == last_ ? nullptr : at_->next; }
  void skip() {
    if constexpr (FirstOnly) {
      while (at_ && !at_->is_first_use()) step();
    }
  }
  Slot* last_ = nullptr;
  Slot* at_ = nullptr;
};

}  // namespace internal

/// What Node::users() returns: valid until users change.
class UserRange {
 public:
  /// The users of `node`.
  explicit UserRange(const Node& node) : last_(node.last_use_) {}
  using iterator = internal::UseIterator<true>;  ///< goes forward and yields `Node&`
  /// A range for `for` loops; see to_vector() for loops that change users.
  /// @{
  iterator begin() const { return iterator(last_); }
  iterator end() const { return {}; }
  /// @}
  /// A snapshot, for loops that change users.
  std::vector<Node*> to_vector() const {
    std::vector<Node*> users;
    for (Node& user : *this) users.push_back(&user);
    return users;
  }

 private:
  internal::Slot* last_;
};

/// What Node::uses() returns: valid until users change.
class UseRange {
 public:
  /// The uses of `node`.
  explicit UseRange(const Node& node) : last_(node.last_use_) {}
  using iterator = internal::UseIterator<false>;  ///< goes forward and yields Use
  /// A range for `for` loops that change no users.
  /// @{
  iterator begin() const { return iterator(last_); }
  iterator end() const { return {}; }
  /// @}

 private:
  internal::Slot* last_;
};

inline UserRange Node::users() const { return UserRange(*this); }
inline UseRange Node::uses() const { return UseRange(*this); }

inline ArgumentSpan Node::args() const {
  if (!arguments_) return {};
  return ArgumentSpan(&arguments_->slots()->value, arguments_->size - num_kwargs_, sizeof(internal::Slot));
}

inline KwargSpan Node::kwargs() const {
  if (num_kwargs_ == 0) return {};
  internal::Slot* slots = arguments_->slots();
  // Keyword names follow the slots of a node's block.
  return {reinterpret_cast<const Symbol*>(slots + arguments_->size), sizeof(Symbol),
          ArgumentSpan(&slots[arguments_->size - num_kwargs_].value, num_kwargs_, sizeof(internal::Slot))};
}

template <typename Visit>
void Node::for_each_input(Visit&& visit) const {
  if (!arguments_) return;
  const internal::Slot* slot = arguments_->slots();
  for (const internal::Slot* end = slot + arguments_->size; slot != end; ++slot) for_each_node(slot->value, visit);
}

}  // namespace fx
