#include <fxgraph/ir/graph.h>

#include <iostream>
#include <ranges>

#include <fxgraph/ir/graph_storage.h>
#include <fxgraph/ir/naming.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

using internal::GraphStorage;

Graph::Graph() : storage_(std::make_unique<GraphStorage>(this)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&& other) noexcept : storage_(std::move(other.storage_)) {
  storage_->owner = this;
  other.storage_ = std::make_unique<GraphStorage>(&other);
}
Graph& Graph::operator=(Graph&& other) noexcept {
  if (this == &other) return *this;
  storage_ = std::move(other.storage_);
  storage_->owner = this;
  other.storage_ = std::make_unique<GraphStorage>(&other);
  return *this;
}

// ── Looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Graph::NodeRange Graph::nodes() { return {storage_->root, storage_->live, false}; }
Graph::ConstNodeRange Graph::nodes() const { return {storage_->root, storage_->live, false}; }
std::size_t Graph::size() const { return storage_->live; }
std::uint32_t Graph::id_bound() const { return storage_->id_count; }
Node* Graph::output_node() const { return storage_->output; }
std::uint64_t Graph::revision() const { return storage_->revision; }

Node* Graph::node_by_id(std::uint32_t id) const {
  if (id >= storage_->id_count) return nullptr;
  Node* node = storage_->node(id);
  return node->erased_ ? nullptr : node;
}

Node* Graph::find(std::string_view name) const {
  const NodeName wanted = split_name(name);
  for (Node& node : const_cast<Graph*>(this)->nodes()) {
    if (storage_->name(node) == wanted) return &node;
  }
  return nullptr;
}

std::size_t Graph::count(Op op, Symbol target) const {
  const std::uint32_t* count = storage_->counts.find(GraphStorage::count_key(op, target));
  return count ? *count : 0;
}

std::uint32_t& internal::GraphStorage::first_count_of(Op op, std::uint64_t key) {
  if (op == Op::call_function || op == Op::call_method || op == Op::call_module) called.push_back(key);
  return counts[key];
}

bool Graph::any_called(const std::function<bool(Op, Symbol)>& test) const {
  return std::ranges::any_of(storage_->called, [&](std::uint64_t key) {
    return *storage_->counts.find(key) > 0 &&
           test(static_cast<Op>(key >> 32), Symbol::from_id(static_cast<std::uint32_t>(key)));
  });
}

std::vector<Node*> Graph::find_nodes(Op op, Symbol target) const {
  std::vector<Node*> found;
  if (op == Op::call_function) target = canonical_target(target);
  if (!target.empty()) {
    const std::size_t expected = count(op, target);
    if (expected == 0) return found;
    found.reserve(expected);
  }
  for (Node& node : const_cast<Graph*>(this)->nodes()) {
    if (node.op_ == op && (target.empty() || node.target_ == target)) found.push_back(&node);
  }
  return found;
}

std::vector<Node*> Graph::placeholders() const {
  // They are the first nodes of a graph that lints; in others the last one is further on.
  std::vector<Node*> found;
  found.reserve(storage_->placeholders);
  for (Node& node : const_cast<Graph*>(this)->nodes()) {
    if (found.size() == storage_->placeholders) break;
    if (node.op_ == Op::placeholder) found.push_back(&node);
  }
  return found;
}

std::size_t Graph::memory_bytes() const {
  return sizeof(GraphStorage) + storage_->chunks.capacity() * sizeof(GraphStorage::Chunk) +
         storage_->node_arena.bytes() + storage_->arena.bytes();
}

// ── Building ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Node& Graph::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) {
  GraphStorage& s = *storage_;
  if (op == Op::output && s.output) {
    throw Error(ErrorKind::invalid_argument, "the graph has an output already; return several values as one tuple",
                s.output->name());
  }
  const auto require_own = [&](const Argument& arg) {
    const Node* value = arg.node_or_null();
    if (value ? value->storage_ != &s || value->erased_ : arg.is_container() || arg.is_node()) [[unlikely]]
      s.require_own(arg, nullptr);
  };
  for (const Argument& arg : args) require_own(arg);
  if (!kwargs.empty()) {
    for (const Argument& arg : kwargs.values()) require_own(arg);
    GraphStorage::require_holdable(kwargs);
  }
  if (op == Op::call_function) target = canonical_target(target);

  const NodeName candidate = name.empty()          ? name_after(target)
                             : is_identifier(name) ? split_name(name)
                                                   : split_name(to_identifier(name));

  Node* node = s.new_node();
  node->op_ = op;
  node->target_ = target;
  s.name(*node) = s.names.create(candidate);
  if (!args.empty() || !kwargs.empty()) s.set_arguments(node, args, kwargs);
  s.link_before(node, s.insertion_next());
  s.advance_insertion(node);
  if (op == Op::output) s.output = node;
  ++s.count_of(op, target);
  ++s.live;
  s.placeholders += op == Op::placeholder;
  ++s.revision;
  if (!s.hooks.empty()) [[unlikely]]
    s.tell_created(*node);
  return *node;
}

Node& Graph::placeholder(std::string_view name, std::optional<Argument> default_value) {
  std::string_view stem = name;
  while (stem.starts_with('*')) stem.remove_prefix(1);  // *args, **kwargs
  if (!default_value) return create_node(Op::placeholder, name, {}, {}, stem);
  return create_node(Op::placeholder, name, ArgumentSpan(&*default_value, 1, sizeof(Argument)), {}, stem);
}

Node& Graph::output(const Argument& value) {
  return create_node(Op::output, "output", ArgumentSpan(&value, 1, sizeof(Argument)));
}

Graph::InsertionScope::InsertionScope(GraphStorage& storage, Node* anchor, bool after)
    : storage_(storage), saved_anchor_(storage.anchor), saved_after_(storage.after) {
  storage.anchor = anchor;
  storage.after = after;
}

Graph::InsertionScope::~InsertionScope() {
  storage_.anchor = saved_anchor_;
  storage_.after = saved_after_;
}

namespace {

Node* require_anchor(const Graph& graph, Node& node) {
  if (&node.graph() == &graph && !node.is_erased()) return &node;
  throw Error(
      ErrorKind::invalid_argument,
      "cannot insert next to " + (node.is_erased() ? "an erased node" : node.name() + ": it is in another graph"));
}

}  // namespace

Graph::InsertionScope Graph::inserting_before(Node& node) { return {*storage_, require_anchor(*this, node), false}; }
Graph::InsertionScope Graph::inserting_after(Node& node) { return {*storage_, require_anchor(*this, node), true}; }
Graph::InsertionScope Graph::inserting_before() { return {*storage_, storage_->root, true}; }
Graph::InsertionScope Graph::inserting_after() { return {*storage_, nullptr, false}; }

// ── Editing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

void Graph::erase_node(Node& node) {
  GraphStorage& s = *storage_;
  if (node.storage_ != &s) {
    throw Error(ErrorKind::invalid_argument, "cannot erase " + node.name() + ": it is in another graph", node.name());
  }
  if (node.erased_) throw Error(ErrorKind::invalid_argument, "cannot erase a node twice");
  if (node.has_users()) {
    std::string users;
    std::size_t shown = 0;
    for (const Node& user : node.users()) {
      if (shown++ == 5) break;
      users += (shown > 1 ? ", " : "") + user.name();
    }
    if (node.num_users() > 5) users += ", …";
    throw Error(ErrorKind::invalid_argument,
                "cannot erase " + node.name() + ": it still has " + std::to_string(node.num_users()) + " user" +
                    (node.num_users() == 1 ? "" : "s") + " (" + users +
                    "); redirect them with replace_all_uses_with first",
                node.name());
  }
  if (!s.hooks.empty()) [[unlikely]]
    s.tell_erased(node);
  s.take_arguments(&node);
  s.unlink(&node);
  node.erased_ = true;
  if (s.output == &node) s.output = nullptr;
  --s.count_of(node.op_, node.target_);
  --s.live;
  s.placeholders -= node.op_ == Op::placeholder;
  ++s.revision;
}

void Graph::restore_node(Node& node, Node* next, ArgumentSpan args, KwargSpan kwargs) {
  GraphStorage& s = *storage_;
  if (node.storage_ != &s || !node.erased_) {
    throw Error(ErrorKind::invalid_argument, "only a node that was erased from this graph can be restored");
  }
  if (next) require_anchor(*this, *next);
  if (node.op_ == Op::output && s.output)
    throw Error(ErrorKind::invalid_argument, "the graph has an output already", s.output->name());
  for (const Argument& arg : args) s.require_own(arg, &node);
  for (const Argument& arg : kwargs.values()) s.require_own(arg, &node);
  GraphStorage::require_holdable(kwargs);
  node.erased_ = false;
  s.link_before(&node, next ? next : s.root);
  s.set_arguments(&node, args, kwargs);
  if (node.op_ == Op::output) s.output = &node;
  ++s.count_of(node.op_, node.target_);
  ++s.live;
  s.placeholders += node.op_ == Op::placeholder;
  ++s.revision;
  if (!s.hooks.empty()) [[unlikely]]
    s.tell_created(node);
}

std::size_t Graph::eliminate_dead_code(const std::function<bool(const Node&)>& is_impure) {
  if (!is_impure)
    throw Error(ErrorKind::invalid_argument,
                "eliminate_dead_code: the function that says what stays is empty; give one");
  const std::size_t before = size();
  for (Node& node : nodes().reversed()) {
    if (node.has_users() || node.op_ == Op::placeholder || node.op_ == Op::output || is_impure(node)) continue;
    erase_node(node);
  }
  return before - size();
}

// ── Copying ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Node& Graph::node_copy(const Node& node, const std::function<Argument(Node&)>& map) {
  if (node.is_erased())
    throw Error(ErrorKind::invalid_argument, "cannot copy an erased node: its arguments are gone; copy it before");
  if (!map) {
    throw Error(ErrorKind::invalid_argument,
                "cannot copy " + node.name() + ": the function that maps its inputs is empty; give one", node.name());
  }
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  for (const Argument& arg : node.args()) args.push_back(map_nodes(arg, map));
  for (const auto& [name, value] : node.kwargs()) kwargs.push_back({name, map_nodes(value, map)});
  Node& copy = create_node(node.op_, node.target_, args, kwargs, node.name());
  if (const Meta* meta = node.find_meta()) copy.meta() = *meta;
  return copy;
}

std::optional<Argument> Graph::graph_copy(const Graph& other, ValueMap& values) {
  if (&other == this) {
    throw Error(ErrorKind::invalid_argument, "cannot copy a graph into itself; copy a clone of it");
  }
  NodeMap<bool> mapped(other, false);
  NodeMap<bool> there(other, false);
  const Node* user = nullptr;
  const auto value_of = [&](Node& node) {
    if (there[node]) return values[node];
    throw Error(ErrorKind::invalid_argument,
                "cannot copy a graph where " + user->name() + " uses " + node.name() + " before it is computed",
                user->name());
  };
  for (const Node& node : other.nodes()) mapped[node] = there[node] = !values[node].is_none();
  std::vector<std::pair<const Node*, Node*>> copies;
  try {
    for (const Node& node : other.nodes()) {
      user = &node;
      if (mapped[node]) continue;
      if (node.op() == Op::output) return node.args().empty() ? Argument() : map_nodes(node.args()[0], value_of);
      Node& copy = node_copy(node, value_of);
      copies.emplace_back(&node, &copy);
      values[node] = copy;
      there[node] = true;
    }
  } catch (...) {
    // Neither the graph nor the map keeps what was copied.
    for (const auto& [node, copy] : std::views::reverse(copies)) {
      values[*node] = Argument();
      try {
        if (!copy->is_erased()) erase_node(*copy);
      } catch (...) {  // a hook wants it to stay, or what it made uses it
      }
    }
    throw;
  }
  return std::nullopt;
}

Graph Graph::clone(NodeMap<Node*>* nodes) const {
  Graph copy;
  GraphStorage& from = *storage_;
  GraphStorage& to = *copy.storage_;
  std::vector<Node*> map(from.id_count);
  to.names = from.names;
  to.counts = from.counts;
  to.called = from.called;
  // In a graph that does not lint a node may use a later one: such uses wait until that has a copy, and then all are
  // linked again, so that users are in the order of the nodes.
  std::vector<internal::Slot*> waiting;
  for (const Node& node : this->nodes()) {
    Node* made = to.new_node();
    map[node.id_] = made;
    made->op_ = node.op_;
    made->target_ = node.target_;
    to.name(*made) = from.name(node);
    to.link_before(made, to.root);
    if (node.op_ == Op::output) to.output = made;
    if (!node.arguments_) continue;
    made->num_kwargs_ = node.num_kwargs_;
    made->arguments_ = to.copy_arguments(node.args(), node.kwargs(), made, [&](internal::Slot* slot) {
      Node* value = map[slot->value.payload_.node->id()];
      if (!value) return waiting.push_back(slot);
      slot->value.payload_.node = value;
      GraphStorage::link_use(slot);
    });
  }
  if (!waiting.empty()) {
    for (internal::Slot* slot : waiting) slot->value.payload_.node = map[slot->value.payload_.node->id()];
    to.link_all_anew();
  }
  to.live = from.live;
  to.placeholders = from.placeholders;
  if (!from.metas.empty()) {
    for (const Node& node : this->nodes()) {
      if (const Meta* meta = node.find_meta()) map[node.id_]->meta() = *meta;
    }
  }
  if (nodes) {
    *nodes = NodeMap<Node*>(*this, nullptr);
    for (const Node& node : this->nodes()) (*nodes)[node] = map[node.id_];
  }
  return copy;
}

void Graph::print_tabular() const { print_tabular(std::cout); }

}  // namespace fx
