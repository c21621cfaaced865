// GraphHooks: a pass that keeps state beside a graph is told of the edits that others make to it.
//
//   fx::GraphHooks hooks(graph, {.created = [&](fx::Node& node) { … },
//                                .erased = [&](fx::Node& node) { … },
//                                .replaced = [&](fx::Node& old, const fx::Argument& by, fx::Node& user) { … }});
//
// They are set while the object lives, several in the order in which they were set. A clone of the graph has none; a
// graph that is moved takes them along. Without hooks an edit costs one comparison more.
//
// created   behind every node that is made or comes back (create_node and what stands on it, node_copy, graph_copy,
//           restore_node): it is in its place, with its arguments. May edit the graph; nodes that it makes are told of
//           likewise, at most 500 deep. When it throws, the node goes again, unless something uses it by then; of a
//           graph that is copied all that was copied goes.
// erased    before a node goes, while it is in its place and has its arguments.
// replaced  before a user gets `by` in place of `old`, once for each user: replace_all_uses_with, replace_input_with,
//           move_uses_to. New arguments that a caller sets (set_args, update_arg, …) replace nothing, as in FX.
// changed   behind a node that has other arguments or another target: where it was told of as replaced, and after
//           set_args, update_arg, set_target and the like. Must not edit the graph.
//
// `erased` and `replaced` may look, and throw, which keeps the edit from being made; when they edit the graph, the edit
// that they were told of throws Error(invalid_argument) and is not made. A Rewriter that rolls back stops at an edit
// that a hook keeps from being undone; another call goes on there. The graph must live while its hooks are told.
// Thread-safety: that of the graph.
#pragma once

#include <functional>

#include <fxgraph/ir/graph.h>

namespace fx {

/// Whom to tell of what, see the top of this file; those that are left empty are not called.
struct EditHooks {
  std::function<void(Node& node)> created{};  ///< behind a node that was made or came back
  std::function<void(Node& node)> erased{};   ///< before a node goes
  /// Before `user` gets `by` in place of `old`.
  std::function<void(Node& old, const Argument& by, Node& user)> replaced{};
  std::function<void(Node& node)> changed{};  ///< behind a node with other arguments, or another target
};

/// Keeps hooks set while it lives; cannot be copied or moved.
class GraphHooks {
 public:
  /// Sets the hooks, behind those that are set already.
  GraphHooks(Graph& graph, EditHooks hooks);
  ~GraphHooks();
  GraphHooks(const GraphHooks&) = delete;
  GraphHooks& operator=(const GraphHooks&) = delete;

  /// They are told nothing any more. May be called by a hook.
  void remove();
  /// False after remove(), and when the graph is gone.
  bool active() const { return storage_ != nullptr; }

 private:
  friend struct internal::GraphStorage;
  internal::GraphStorage* storage_;
  EditHooks hooks_;
};

}  // namespace fx
