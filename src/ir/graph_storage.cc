#include <fxgraph/ir/graph_storage.h>

#include <algorithm>
#include <new>
#include <utility>

#include <fxgraph/support/flat_map.h>

namespace fx::internal {

namespace {

constexpr std::uint64_t kGap = std::uint64_t{1} << 24;        // between nodes appended in order
constexpr std::uint64_t kOutputGap = std::uint64_t{1} << 50;  // before the output, where most later nodes go
constexpr std::uint64_t kMaxLabel = ~std::uint64_t{0} >> 1;

}  // namespace

GraphStorage::GraphStorage(Graph* graph) : owner(graph) {
  root_node.storage_ = this;
  root_node.previous_ = root_node.next_ = &root_node;
}

// ── Nodes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

Node* GraphStorage::new_node() {
  if (id_count == ~std::uint32_t{0}) throw Error(ErrorKind::invalid_argument, "a graph holds at most 2^32 - 1 nodes");
  const std::uint32_t id = id_count;
  if ((id >> kChunkBits) == chunks.size()) {
    chunks.push_back({static_cast<Node*>(node_arena.allocate_line(sizeof(Node) * kChunkSize)),
                      static_cast<NodeName*>(arena.allocate(sizeof(NodeName) * kChunkSize))});
  }
  ++id_count;
  Node* made = new (node(id)) Node;
  made->storage_ = this;
  made->id_ = id;
  new (&name(*made)) NodeName;
  return made;
}

void GraphStorage::link_before(Node* node, Node* next) {
  node->next_ = next;
  node->previous_ = next->previous_;
  next->previous_->next_ = node;
  next->previous_ = node;
  label(node);
}

// The node's own links stay, for iterators that stand on it.
void GraphStorage::unlink(Node* node) {
  node->previous_->next_ = node->next_;
  node->next_->previous_ = node->previous_;
}

void GraphStorage::label(Node* node) {
  const std::uint64_t low = node->previous_->order_;  // the root's is 0
  if (node->next_ == root) {
    const std::uint64_t gap = node->op_ == Op::output ? kOutputGap : kGap;
    if (low < kMaxLabel - gap) {
      node->order_ = low + gap;
      return;
    }
  } else if (const std::uint64_t room = node->next_->order_ - low; room > 1) {
    node->order_ = low + std::min(room / 2, kGap);
    return;
  }
  relabel(node);
}

// Spreads the labels of the smallest aligned range around `node` that is sparse enough.
// Bender, Cole, Demaine, Farach-Colton, Zito: Two Simplified Algorithms for Maintaining Order in a List (2002).
// Amortised O(log nodes) per insertion at one spot.
void GraphStorage::relabel(Node* node) {
  const std::uint64_t center = node->previous_->order_;
  Node* first = node;
  Node* last = node;
  std::uint64_t count = 1;
  double capacity = 1;
  for (int bits = 1; bits <= 63; ++bits) {
    capacity *= 2 / 1.5;
    const std::uint64_t low = center & ~((std::uint64_t{1} << bits) - 1);
    const std::uint64_t high = low + ((std::uint64_t{1} << bits) - 1);
    while (first->previous_ != root && first->previous_->order_ >= low) {
      first = first->previous_;
      ++count;
    }
    while (last->next_ != root && last->next_->order_ <= high) {
      last = last->next_;
      ++count;
    }
    const std::uint64_t step = (high - low) / (count + 1);
    if (bits < 63 && (static_cast<double>(count) > capacity || step < 2))
      continue;  // at 63 bits this is the whole graph
    std::uint64_t label = low;
    for (Node* at = first;; at = at->next_) {
      at->order_ = label += step;
      if (at == last) return;
    }
  }
}

// ── Insertion point ──────────────────────────────────────────────────────────────────────────────────────────────────

Node* GraphStorage::alive(Node* node, bool backward) const {
  while (node->erased_) node = backward ? node->previous_ : node->next_;
  return node;
}

Node* GraphStorage::insertion_next() {
  if (!anchor) return output && output->next_ == root ? output : root;
  anchor = alive(anchor, after);
  return after ? anchor->next_ : anchor;
}

void GraphStorage::advance_insertion(Node* made) {
  if (after) anchor = made;  // there is one then
}

// ── Arguments ────────────────────────────────────────────────────────────────────────────────────────────────────────

ArgumentBlock* GraphStorage::allocate_block(Node* user, std::size_t size, std::size_t kwargs) {
  const std::size_t bytes = block_bytes(size, kwargs);
  FreeBlock*& free = free_blocks[size_class(bytes)];
  void* memory = free;
  if (free) {
    free = free->next;
  } else {
    memory = arena.allocate(bytes);
  }
  auto* block = new (memory) ArgumentBlock;
  block->user = user;
  block->size = static_cast<std::uint32_t>(size);
  return block;
}

void GraphStorage::release_block(ArgumentBlock* block, std::size_t kwargs) {
  for (Slot *slot = block->slots(), *end = slot + block->size; slot != end; ++slot) {
    if (slot->value.is_node()) {
      unlink_use(slot);
    } else if (slot->value.is_container()) {
      release_block(slot->value.payload_.block, 0);
    }
  }
  FreeBlock*& free = free_blocks[size_class(block_bytes(block->size, kwargs))];
  free = new (static_cast<void*>(block)) FreeBlock{free};
}

void GraphStorage::throw_uncountable() {
  throw Error(ErrorKind::invalid_argument,
              "a node holds at most " + std::to_string(kMostKwargs) + " keyword arguments");
}

void GraphStorage::require_distinct(const KwargSpan& kwargs) {
  const auto refuse = [](Symbol name) {
    throw Error(ErrorKind::invalid_argument, "the keyword argument " + name.str() + " is given twice; remove one");
  };
  constexpr std::size_t kFew = 8;  // of which each pair is looked at
  if (kwargs.size() <= kFew) {
    for (std::size_t i = 1; i < kwargs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (kwargs.name(i) == kwargs.name(j)) refuse(kwargs.name(i));
      }
    }
    return;
  }
  FlatMap<bool> seen;
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    if (std::exchange(seen[kwargs.name(i).id()], true)) refuse(kwargs.name(i));
  }
}

namespace {

bool holds_container(const ArgumentSpan& arguments) {
  for (const Argument& argument : arguments) {
    if (argument.is_container()) return true;
  }
  return false;
}

}  // namespace

void GraphStorage::set_arguments(Node* node, ArgumentSpan args, const KwargSpan& kwargs) {
  if (node->arguments_ || holds_container(args) || holds_container(kwargs.values())) {
    // They may be the node's own; and memory may run out before all are copied.
    ArgumentBlock* block = copy_arguments(args, kwargs, node, [](Slot*) {});
    take_arguments(node);
    node->arguments_ = block;
    if (block) link_all(block);
  } else {
    node->arguments_ = copy_arguments(args, kwargs, node, [](Slot* slot) { link_use(slot); });
  }
  node->num_kwargs_ = static_cast<std::uint16_t>(kwargs.size());
  ++revision;
}

void GraphStorage::take_arguments(Node* node) {
  if (!node->arguments_) return;
  release_block(node->arguments_, node->num_kwargs_);
  node->arguments_ = nullptr;
  node->num_kwargs_ = 0;
}

void GraphStorage::require_own(const Argument& argument, const Node* user) const {
  if (argument.is_node() && !argument.node_or_null()) {
    throw Error(ErrorKind::invalid_argument,
                "an argument of " + (user ? user->name() : "a new node") +
                    " is a null pointer in place of a node; find() gives one for a name that is not in the graph",
                user ? user->name() : std::string());
  }
  for_each_node(argument, [&](const Node& node) {
    if (node.storage_ == this && !node.erased_) return;
    const std::string whose = user ? user->name() : "a new node";
    throw Error(ErrorKind::invalid_argument,
                node.erased_ ? "an argument of " + whose + " is a node that was erased"
                             : "argument " + node.name() + " of " + whose +
                                   " belongs to another graph; copy it over with node_copy or graph_copy",
                user ? user->name() : std::string());
  });
}

// ── Uses ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

// To be called for all uses of a user at once: taking away a first use alone would leave the user uncounted.
void GraphStorage::unlink_use(Slot* slot) {
  Node* value = slot->value.payload_.node;
  value->num_users_ -= slot->is_first_use();
  if (slot->next == slot) {
    value->last_use_ = nullptr;
    return;
  }
  slot->previous->next = slot->next;
  slot->next->previous = slot->previous;
  if (value->last_use_ == slot) value->last_use_ = slot->previous;
}

void GraphStorage::link_all(ArgumentBlock* block) { for_each_use(block, link_use); }

void GraphStorage::link_all_anew() {
  for (Node& node : owner->nodes()) {
    node.last_use_ = nullptr;
    node.num_users_ = 0;
  }
  for (Node& node : owner->nodes()) {
    if (node.arguments_) link_all(node.arguments_);
  }
}

// Looks from both ends, so that the shorter side decides the cost: the uses of `value`, or the arguments of `user`.
bool GraphStorage::uses(Node* user, Node* value) {
  Slot* use = value->last_use_;
  if (!use) return false;
  if (use->user() == user) return true;
  bool found = false;
  std::size_t arguments = 0;
  for_each_use(user->arguments_, [&](Slot*) { ++arguments; });
  for (std::size_t i = 0; i < arguments; ++i) {
    use = use->next;
    if (use->user() == user) return true;
    if (use == value->last_use_) return false;
  }
  for_each_use(user->arguments_, [&](Slot* slot) { found |= slot->value.payload_.node == value; });
  return found;
}

void GraphStorage::move_uses(Node* from, Node* to) {
  Slot* const last = from->last_use_;
  if (!last) return;
  const bool fresh = to->last_use_ == nullptr;
  for (Slot *slot = last->next, *following = nullptr;; slot = following) {
    following = slot->next;
    const bool done = slot == last;
    if (!fresh) {
      const bool first = slot->is_first_use() && !uses(slot->user(), to);
      append_use(slot, to, first);
    }
    slot->value.payload_.node = to;
    if (done) break;
  }
  if (fresh) {  // the ring goes over whole
    to->last_use_ = last;
    to->num_users_ = from->num_users_;
  }
  from->last_use_ = nullptr;
  from->num_users_ = 0;
  ++revision;
}

void GraphStorage::replace_input(Node* user, Node* from, const Argument& to) {
  if (!user->arguments_ || to.node_or_null() == from) return;
  if (!to.is_container()) {
    Node* const node = to.node_or_null();
    bool first = node && !uses(user, node);
    for_each_use(user->arguments_, [&](Slot* slot) {
      if (slot->value.payload_.node != from) return;
      unlink_use(slot);
      slot->value.kind_ = to.kind_;
      slot->value.payload_ = to.payload_;
      if (!node) return;
      append_use(slot, node, first);
      first = false;
    });
    ++revision;
    return;
  }
  const auto map = [&](Node& node) { return &node == from ? to : Argument(node); };
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  for (const Argument& arg : user->args()) args.push_back(map_nodes(arg, map));
  for (const auto& [name, value] : user->kwargs()) kwargs.push_back({name, map_nodes(value, map)});
  set_arguments(user, args, kwargs);
}

}  // namespace fx::internal
