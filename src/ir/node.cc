#include <fxgraph/ir/node.h>

#include <array>
#include <ostream>
#include <unordered_set>

#include <fxgraph/ir/graph_storage.h>

namespace fx {

using internal::GraphStorage;
using internal::Slot;

std::string_view to_string(Op op) {
  static constexpr std::array<std::string_view, 6> kNames = {"placeholder", "get_attr",    "call_function",
                                                             "call_method", "call_module", "output"};
  return kNames[static_cast<std::size_t>(op)];
}

std::ostream& operator<<(std::ostream& out, Op op) { return out << to_string(op); }
std::ostream& operator<<(std::ostream& out, const Node& node) { return out << node.name(); }

NodeName Node::name_parts() const { return storage_->name(*this); }
Graph& Node::graph() { return *storage_->owner; }
const Graph& Node::graph() const { return *storage_->owner; }

const Argument& Node::arg(std::size_t i) const {
  if (i >= args().size()) {
    throw Error(
        ErrorKind::invalid_argument,
        name() + " has " + std::to_string(args().size()) + " positional arguments, none at " + std::to_string(i),
        name());
  }
  return args()[i];
}

Node* Node::next() const {
  Node* node = storage_->alive(next_, false);
  internal::prefetch_near(node, internal::kNodesAhead);
  internal::prefetch_near(node->arguments_, internal::kArgumentsAhead);
  return node == storage_->root ? nullptr : node;
}

Node* Node::previous() const {
  Node* node = storage_->alive(previous_, true);
  internal::prefetch_near(node, -internal::kNodesAhead);
  internal::prefetch_near(node->arguments_, -internal::kArgumentsAhead);
  return node == storage_->root ? nullptr : node;
}

namespace {

void require_movable(const Node& node, const Node& anchor) {
  if (node.is_erased() || anchor.is_erased()) {
    throw Error(ErrorKind::invalid_argument, "cannot move an erased node, nor move a node next to one");
  }
  if (&node.graph() != &anchor.graph()) {
    throw Error(ErrorKind::invalid_argument,
                "cannot move " + node.name() + " next to " + anchor.name() + ": they are in different graphs",
                node.name());
  }
}

void require_there(const Node& node, const char* what) {
  if (node.is_erased())
    throw Error(ErrorKind::invalid_argument, std::string("cannot set the ") + what + " of a node that was erased");
}

void tell_changed(internal::GraphStorage& storage, Node& node) {
  if (storage.hooks.empty()) [[likely]]
    return;
  Node* const told = &node;
  storage.tell_changed({&told, 1});
}

}  // namespace

void Node::prepend(Node& node) {
  require_movable(node, *this);
  if (&node == this || node.next_ == this) return;
  storage_->unlink(&node);
  storage_->link_before(&node, this);
  ++storage_->revision;
}

void Node::append(Node& node) {
  require_movable(node, *this);
  if (&node == this || node.previous_ == this) return;
  storage_->unlink(&node);
  storage_->link_before(&node, next_);
  ++storage_->revision;
}

std::vector<Node*> Node::all_input_nodes() const {
  std::vector<Node*> inputs;
  std::unordered_set<const Node*> seen;  // membership only; the order is that of the arguments
  for_each_input([&](Node& input) {
    constexpr std::size_t kFew = 16;
    if (inputs.size() < kFew) {
      for (const Node* known : inputs) {
        if (known == &input) return;
      }
    } else {
      if (seen.empty()) seen.insert(inputs.begin(), inputs.end());
      if (!seen.insert(&input).second) return;
    }
    inputs.push_back(&input);
  });
  return inputs;
}

void Node::set_args_kwargs(ArgumentSpan args, KwargSpan kwargs) {
  require_there(*this, "arguments");
  for (const Argument& arg : args) storage_->require_own(arg, this);
  for (const Argument& arg : kwargs.values()) storage_->require_own(arg, this);
  internal::GraphStorage::require_holdable(kwargs);
  storage_->set_arguments(this, args, kwargs);
  tell_changed(*storage_, *this);
}

void Node::set_args(ArgumentSpan args) { set_args_kwargs(args, kwargs()); }
void Node::set_kwargs(KwargSpan kwargs) { set_args_kwargs(args(), kwargs); }

void Node::update_arg(std::size_t i, const Argument& value) {
  arg(i);
  std::vector<Argument> changed = args().to_vector();
  changed[i] = value;
  set_args(changed);
}

void Node::update_kwarg(Symbol name, const Argument& value) {
  std::vector<NamedArgument> changed = kwargs().to_vector();
  for (NamedArgument& kwarg : changed) {
    if (kwarg.name != name) continue;
    kwarg.value = value;
    return set_kwargs(changed);
  }
  changed.push_back({name, value});
  set_kwargs(changed);
}

void Node::insert_arg(std::size_t i, const Argument& value) {
  std::vector<Argument> changed = args().to_vector();
  if (i > changed.size()) {
    throw Error(ErrorKind::invalid_argument,
                "cannot insert an argument at " + std::to_string(i) + " of " + name() + ": it has " +
                    std::to_string(changed.size()),
                name());
  }
  changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), value);
  set_args(changed);
}

void Node::set_target(Symbol target) {
  require_there(*this, "target");
  if (op_ == Op::call_function) target = canonical_target(target);
  --storage_->count_of(op_, target_);
  target_ = target;
  ++storage_->count_of(op_, target_);
  ++storage_->revision;
  tell_changed(*storage_, *this);
}

void Node::set_target(Op op, Symbol target) {
  require_there(*this, "target");
  const auto is_call = [](Op o) { return o == Op::call_function || o == Op::call_method || o == Op::call_module; };
  if (!is_call(op_) || !is_call(op)) {
    throw Error(ErrorKind::invalid_argument, "only a call can become another kind of call", name());
  }
  --storage_->count_of(op_, target_);
  op_ = op;
  target_ = op == Op::call_function ? canonical_target(target) : target;
  ++storage_->count_of(op_, target_);
  ++storage_->revision;
  tell_changed(*storage_, *this);
}

void Node::rename(std::string_view candidate) {
  require_there(*this, "name");
  const NodeName wanted = split_name(to_identifier(candidate));
  NodeName& name = storage_->name(*this);
  if (name == wanted) return;
  name = storage_->names.create(wanted);
  ++storage_->revision;
}

std::vector<Node*> Node::replace_all_uses_with(const Argument& replacement,
                                               const std::function<bool(const Node&)>& only) {
  storage_->require_own(replacement, nullptr);
  std::vector<Node*> changed;
  for (Node& user : users()) {
    if (only && !only(user)) continue;
    for_each_node(replacement, [&](const Node& node) {
      if (&node == this)
        throw Error(ErrorKind::invalid_argument, "cannot replace " + name() + " by a value that contains it", name());
      if (&node != &user) return;
      throw Error(ErrorKind::invalid_argument,
                  "replacing " + name() + " by " + user.name() + " would make " + user.name() +
                      " its own input; pass fx::except(" + user.name() + ") to leave it out",
                  name());
    });
    changed.push_back(&user);
  }
  if (!storage_->hooks.empty()) [[unlikely]]
    storage_->tell_replaced(*this, replacement, changed);
  if (!only && replacement.is_node()) {
    storage_->move_uses(this, &replacement.node());
  } else {
    for (Node* user : changed) storage_->replace_input(user, this, replacement);
  }
  if (!storage_->hooks.empty()) [[unlikely]]
    storage_->tell_changed(changed);
  return changed;
}

std::vector<Node*> Node::replace_all_uses_with(Node& replacement, const std::function<bool(const Node&)>& only) {
  if (&replacement == this) return {};
  return replace_all_uses_with(Argument(replacement), only);
}

void Node::move_uses_to(Node& replacement) {
  if (&replacement == this) return;
  require_there(*this, "uses");
  storage_->require_own(replacement, nullptr);
  replacement.for_each_input([&](const Node& input) {
    if (&input == this)
      throw Error(ErrorKind::invalid_argument, replacement.name() + " would become its own input", name());
  });
  if (storage_->hooks.empty()) [[likely]]
    return storage_->move_uses(this, &replacement);
  const std::vector<Node*> told = users().to_vector();
  storage_->tell_replaced(*this, replacement, told);
  storage_->move_uses(this, &replacement);
  storage_->tell_changed(told);
}

void Node::replace_input_with(Node& old, Node& replacement) {
  require_there(*this, "arguments");
  storage_->require_own(replacement, this);
  if (&replacement == this)
    throw Error(ErrorKind::invalid_argument, "cannot make " + name() + " its own input", name());
  if (!storage_->hooks.empty() && arguments_ && GraphStorage::uses(this, &old)) [[unlikely]] {
    Node* const user = this;
    storage_->tell_replaced(old, replacement, {&user, 1});
  }
  storage_->replace_input(this, &old, replacement);
  tell_changed(*storage_, *this);
}

Meta& Node::meta() {
  std::vector<std::uint32_t>& indices = storage_->meta_index;
  if (id_ >= indices.size()) indices.resize(storage_->id_count + storage_->id_count / 2);
  std::uint32_t& index = indices[id_];
  if (index != 0) return storage_->metas[index - 1];
  Meta& made = storage_->metas.emplace_back();
  index = static_cast<std::uint32_t>(storage_->metas.size());
  return made;
}

const Meta* Node::find_meta() const {
  const std::vector<std::uint32_t>& indices = storage_->meta_index;
  return id_ < indices.size() && indices[id_] ? &storage_->metas[indices[id_] - 1] : nullptr;
}

}  // namespace fx
