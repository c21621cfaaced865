#include <fxgraph/rewriter/rewriter.h>

#include <string>
#include <utility>

#include <fxgraph/support/error.h>

namespace fx {

void Rewriter::save_arguments(Entry& entry, const Node& node) {
  const ArgumentSpan args = node.args();
  entry.size = static_cast<std::uint32_t>(args.size());
  for (const Argument& arg : args) saved_values_.push_back(arg);
  const KwargSpan kwargs = node.kwargs();
  if (kwargs.empty()) return;
  entry.size += static_cast<std::uint32_t>(kwargs.size());
  entry.kwargs = static_cast<std::uint16_t>(kwargs.size());
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    saved_values_.push_back(kwargs.value(i));
    saved_names_.push_back(kwargs.name(i));
  }
}

void Rewriter::take_arguments(const Entry& entry) {
  const std::size_t first = saved_values_.size() - entry.size;
  const std::size_t positional = entry.size - entry.kwargs;
  args_.clear();
  for (std::size_t i = 0; i < positional; ++i) args_.push_back(saved_values_[first + i]);
  kwargs_.clear();
  for (std::size_t i = 0; i < entry.kwargs; ++i) {
    kwargs_.push_back({saved_names_[saved_names_.size() - entry.kwargs + i], saved_values_[first + positional + i]});
  }
  saved_values_.shrink(first);
  saved_names_.resize(saved_names_.size() - entry.kwargs);
}

// ── Edits ────────────────────────────────────────────────────────────────────────────────────────────────────────────

Node& Rewriter::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) {
  Node& node = graph_->create_node(op, target, args, kwargs, name);
  record({.kind = Kind::created, .node = &node});
  if (listener_) listener_->created(node);
  return node;
}

void Rewriter::erase_node(Node& node) {
  if (node.is_erased() || node.has_users() || &node.graph() != graph_) {
    graph_->erase_node(node);  // says what is wrong
    return;
  }
  if (listener_) listener_->erased(node);
  Entry entry{.kind = Kind::erased, .node = &node, .other = node.next()};
  save_arguments(entry, node);
  graph_->erase_node(node);
  record(entry);
}

void Rewriter::set_args_kwargs(Node& node, ArgumentSpan args, KwargSpan kwargs) {
  const auto refuse_self = [&](const Node& input) {
    if (&input == &node)
      throw Error(ErrorKind::invalid_argument, "cannot make " + node.name() + " its own input", node.name());
  };
  for (const Argument& argument : args) for_each_node(argument, refuse_self);
  for (const Argument& argument : kwargs.values()) for_each_node(argument, refuse_self);
  Entry entry{.kind = Kind::arguments, .node = &node};
  save_arguments(entry, node);
  try {
    node.set_args_kwargs(args, kwargs);
  } catch (...) {
    take_arguments(entry);
    throw;
  }
  record(entry);
  if (listener_) listener_->changed(node);
}

void Rewriter::replace_input_with(Node& node, Node& from, Node& to) {
  Entry entry{.kind = Kind::arguments, .node = &node};
  save_arguments(entry, node);
  try {
    node.replace_input_with(from, to);
  } catch (...) {
    take_arguments(entry);
    throw;
  }
  record(entry);
  if (listener_) listener_->changed(node);
}

void Rewriter::set_target(Node& node, Symbol target) {
  const Entry entry{.kind = Kind::target, .size = node.target().id(), .node = &node};
  node.set_target(target);
  record(entry);
  if (listener_) listener_->changed(node);
}

void Rewriter::move_before(Node& node, Node& next) {
  const Entry entry{.kind = Kind::moved, .node = &node, .other = node.next()};
  next.prepend(node);
  record(entry);
  if (listener_) listener_->changed(node);
}

void Rewriter::replace_all_uses_with(Node& from, const Argument& to) {
  if (to.node_or_null() == &from) return;
  bool uses_itself = false;  // only a graph that was made so: then `fresh` would have a use that does not move back
  from.for_each_input([&](const Node& input) { uses_itself |= &input == &from; });
  if (Node* fresh = to.node_or_null(); fresh && !fresh->has_users() && !uses_itself) {
    // The uses move over as they are, and move back as they are.
    const std::vector<Node*> users = listener_ ? from.users().to_vector() : std::vector<Node*>();
    from.move_uses_to(*fresh);
    record({.kind = Kind::uses_moved, .size = forward(from, to), .node = &from, .other = fresh});
    if (listener_) {
      for (Node* user : users) listener_->changed(*user);
    }
  } else {
    // Whether a use was there before cannot be told later: the users' arguments are kept.
    const std::vector<Node*> users = from.users().to_vector();
    for (Node* user : users) {
      Entry entry{.kind = Kind::arguments, .node = user};
      save_arguments(entry, *user);
      record(entry);
    }
    try {
      from.replace_all_uses_with(to);
    } catch (...) {
      for (std::size_t i = 0; i < users.size(); ++i) {
        take_arguments(journal_.back());
        journal_.pop_back();
      }
      throw;
    }
    record({.kind = Kind::forwarded, .size = forward(from, to), .node = &from});
    if (listener_) {
      for (Node* user : users) listener_->changed(*user);
    }
  }
  if (listener_) listener_->replaced(from, to);
}

// ── The journal ──────────────────────────────────────────────────────────────────────────────────────────────────────

void Rewriter::rollback(Mark to) {
  if (to < committed_ || to > mark()) {
    throw Error(
        ErrorKind::invalid_argument,
        "rollback(" + std::to_string(to) +
            "): " + (to < committed_ ? "what was done since was committed" : "nothing was done since that mark") +
            "; marks from " + std::to_string(committed_) + " to " + std::to_string(mark()) + " can be gone back to");
  }
  while (mark() > to) {
    undo(journal_.back());  // stays in the journal when a hook of the graph throws
    journal_.pop_back();
  }
}

void Rewriter::undo(const Entry& entry) {
  Node& node = *entry.node;
  switch (entry.kind) {
    case Kind::created:
      if (listener_) listener_->erased(node);
      try {
        graph_->erase_node(node);
      } catch (...) {
        if (listener_) listener_->created(node);
        throw;
      }
      return;
    case Kind::erased:
      take_arguments(entry);
      try {
        graph_->restore_node(node, entry.other, args_, kwargs_);
      } catch (...) {
        for (const Argument& argument : args_) saved_values_.push_back(argument);
        for (const auto& [name, value] : kwargs_) {
          saved_values_.push_back(value);
          saved_names_.push_back(name);
        }
        throw;
      }
      if (listener_) listener_->created(node);
      return;
    case Kind::arguments:
      take_arguments(entry);
      node.set_args_kwargs(args_, kwargs_);
      break;
    case Kind::target: node.set_target(Symbol::from_id(entry.size)); break;
    case Kind::moved:
      if (entry.other) {
        entry.other->prepend(node);
      } else {
        graph_->nodes().back().append(node);
      }
      break;
    case Kind::uses_moved: {
      const std::vector<Node*> users = listener_ ? entry.other->users().to_vector() : std::vector<Node*>();
      entry.other->move_uses_to(node);
      unforward(node, entry.size);
      if (listener_) {
        for (Node* user : users) listener_->changed(*user);
      }
      return;
    }
    case Kind::forwarded: unforward(node, entry.size); return;
  }
  if (listener_) listener_->changed(node);
}

void Rewriter::commit() {
  committed_ = mark();
  journal_.shrink(0);
  saved_values_.shrink(0);
  saved_names_.clear();
}

// ── Where values went ────────────────────────────────────────────────────────────────────────────────────────────────

/// Returns what was there before, for undo.
std::uint32_t Rewriter::forward(Node& from, const Argument& to) {
  if (forward_of_.size() == 0) forward_of_ = NodeMap<std::uint32_t>(*graph_, 0);
  forwards_.push_back(to);
  return std::exchange(forward_of_[from], static_cast<std::uint32_t>(forwards_.size()));
}

void Rewriter::unforward(Node& from, std::uint32_t before) {
  forward_of_[from] = before;
  forwards_.pop_back();
}

Argument Rewriter::forwarded(const Argument& value) {
  if (!is_replaced(value)) return value;
  if (!value.is_node()) return map_nodes(value, [&](Node& node) { return forwarded(Argument(node)); });
  Argument now = value;
  while (now.is_node() && is_replaced(now)) now = forwards_[std::as_const(forward_of_)[now.node()] - 1];
  return now.is_node() ? now : forwarded(now);
}

}  // namespace fx
