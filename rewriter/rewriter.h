// Rewriter: the one door for edits while a graph is rewritten.
//
//   fx::Rewriter rewriter(graph);
//   const auto before = rewriter.mark();
//   …edits through the rewriter…
//   if (!good) rewriter.rollback(before);        // the graph reads as it did
//
// Every edit goes into a journal. From it come undo, "did anything change", what to visit again, and where a value went
// that was replaced. An edit that throws leaves no entry and no trace.
//
// After a rollback the graph prints as before; the users of a value that an undone edit touched may be in another
// order, and names that undone nodes had are used up.
//
// Costs: each edit costs what the Graph's does, plus its old arguments. Undo costs what was done. Thread-safety: none;
// a Rewriter and its graph belong to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/support/chunked_vector.h>

namespace fx {

/// Told about edits as they are made; undoing tells the opposite edits.
class RewriteListener {
 public:
  virtual ~RewriteListener() = default;
  /// The node is in its place and has its arguments.
  virtual void created(Node&) {}
  /// Before the node goes: it still has its arguments.
  virtual void erased(Node&) {}
  /// The node has other arguments, another target or another place.
  virtual void changed(Node&) {}
  /// All uses of the value went elsewhere.
  virtual void replaced(Node&, const Argument&) {}
};

/// Edits one graph and remembers how to undo it; see the top of this file.
class Rewriter {
 public:
  /// Starts with an empty journal; `graph` must outlive it.
  explicit Rewriter(Graph& graph) : graph_(&graph) {}
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  /// The graph that is edited. Edits that go round the rewriter are not in its journal.
  /// @{
  Graph& graph() { return *graph_; }
  const Graph& graph() const { return *graph_; }
  /// @}

  // Edits, with the contracts of the same functions of Graph and Node.
  /// The edits of Graph and Node, with their contracts; `move_before` is `next.prepend(node)`. `set_args` and
  /// `set_args_kwargs` refuse to make a node its own input, too.
  /// @{
  Node& create_node(Op op, Symbol target, ArgumentSpan args = {}, KwargSpan kwargs = {}, std::string_view name = {});
  Node& get_attr(Symbol path) { return create_node(Op::get_attr, path); }
  Node& call_function(Symbol target, ArgumentSpan args = {}, KwargSpan kwargs = {}, std::string_view name = {}) {
    return create_node(Op::call_function, target, args, kwargs, name);
  }
  Node& call_method(Symbol method, ArgumentSpan args, KwargSpan kwargs = {}, std::string_view name = {}) {
    return create_node(Op::call_method, method, args, kwargs, name);
  }
  Node& call_module(Symbol path, ArgumentSpan args = {}, KwargSpan kwargs = {}, std::string_view name = {}) {
    return create_node(Op::call_module, path, args, kwargs, name);
  }
  [[nodiscard]] Graph::InsertionScope inserting_before(Node& node) { return graph_->inserting_before(node); }
  [[nodiscard]] Graph::InsertionScope inserting_after(Node& node) { return graph_->inserting_after(node); }
  void erase_node(Node& node);
  void set_args(Node& node, ArgumentSpan args) { set_args_kwargs(node, args, node.kwargs()); }
  void set_args_kwargs(Node& node, ArgumentSpan args, KwargSpan kwargs);
  /// Makes `node` take `to` wherever it takes `from`.
  void replace_input_with(Node& node, Node& from, Node& to);
  void set_target(Node& node, Symbol target);
  void move_before(Node& node, Node& next);
  /// @}
  /// Writes assertions as edits.
  AssertionWriter assertions() {
    return AssertionWriter([this](Symbol target, ArgumentSpan args) -> Node& { return call_function(target, args); });
  }
  /// Makes all users of `from` use `to`; from then on forwarded(from) is `to`.
  void replace_all_uses_with(Node& from, const Argument& to);
  /// Erases `node` and then, upward, what only it used, as far as nothing uses them and `may_go` accepts them.
  template <typename MayGo>
  void erase_unused(Node& node, MayGo&& may_go);

  // The journal.
  using Mark = std::size_t;  ///< a place in the journal; a commit() does not move it
  /// What rollback() and changed() count from.
  Mark mark() const { return committed_ + journal_.size(); }
  /// True when something was done since (without a mark: since the last commit), undone edits left out.
  /// @{
  bool changed() const { return !journal_.empty(); }
  bool changed(Mark since) const { return mark() > since; }
  /// @}
  /// Undoes what was done since, newest first. Throws Error(invalid_argument) when that is not so any more: some of it
  /// was committed, or the mark stands behind what was done.
  /// @{
  void rollback() { rollback(committed_); }
  void rollback(Mark to);
  /// @}
  /// Forgets what was done: it can no longer be undone.
  void commit();

  /// What stands for `value` now: values that were replaced are followed, in lists too. O(1) amortised for a node.
  Argument forwarded(const Argument& value);
  /// True when forwarded() would change the value.
  bool is_replaced(const Argument& value) const {
    if (forwards_.empty()) return false;
    if (const Node* node = value.node_or_null()) return forward_of_[*node] != 0;
    bool found = false;
    for_each_node(value, [&](const Node& node) { found |= forward_of_[node] != 0; });
    return found;
  }

  /// Tells `listener` of every edit from now on, in place of the one before; null tells nobody. It must outlive the
  /// rewriter.
  void set_listener(RewriteListener* listener) { listener_ = listener; }

 private:
  enum class Kind : std::uint8_t { created, erased, arguments, target, moved, uses_moved, forwarded };
  struct Entry {
    Kind kind;
    std::uint16_t kwargs = 0;
    std::uint32_t size = 0;  // saved arguments, kwargs included; or the old target, or the old forward
    Node* node = nullptr;
    Node* other = nullptr;
  };

  void save_arguments(Entry& entry, const Node& node);
  /// Takes the newest saved arguments off the pools, into `args` and `kwargs`.
  void take_arguments(const Entry& entry);
  void record(const Entry& entry) { journal_.push_back(entry); }
  void undo(const Entry& entry);
  std::uint32_t forward(Node& from, const Argument& to);
  void unforward(Node& from, std::uint32_t before);

  Graph* graph_;
  RewriteListener* listener_ = nullptr;
  ChunkedVector<Entry> journal_;
  std::size_t committed_ = 0;  // entries that the journal no longer has
  ChunkedVector<Argument> saved_values_;
  std::vector<Symbol> saved_names_;
  std::vector<Argument> args_;  // take_arguments' result
  std::vector<NamedArgument> kwargs_;
  ChunkedVector<Argument> forwards_;   // what replaced values became
  NodeMap<std::uint32_t> forward_of_;  // 1 + position in forwards_
};

template <typename MayGo>
void Rewriter::erase_unused(Node& node, MayGo&& may_go) {
  std::vector<Node*> dead = {&node};
  while (!dead.empty()) {
    Node* next = dead.back();
    dead.pop_back();
    if (next->is_erased() || next->has_users() || !may_go(*next)) continue;
    const std::vector<Node*> inputs = next->all_input_nodes();
    erase_node(*next);
    dead.insert(dead.end(), inputs.begin(), inputs.end());
  }
}

}  // namespace fx
