// How a Graph is laid out. Internal to src/ir: no other folder includes this.
//
// Nodes are 64-byte records in chunks that never move, in the order of their ids and with nothing between them, so that
// walking on is walking on in memory; names lie beside. Arguments are
// blocks in an arena, recycled by size. Uses are rings threaded through the argument slots. Order labels are 64-bit
// numbers with gaps; a full gap is relabelled locally.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/namespace.h>
#include <fxgraph/support/arena.h>
#include <fxgraph/support/chunked_vector.h>
#include <fxgraph/support/flat_map.h>

namespace fx {
class GraphHooks;
}

namespace fx::internal {

struct GraphStorage {
  static constexpr std::uint32_t kChunkBits = 6;
  static constexpr std::uint32_t kChunkSize = 1u << kChunkBits;

  struct Chunk {
    Node* nodes;
    NodeName* names;
  };

  struct FreeBlock {
    FreeBlock* next;
  };

  explicit GraphStorage(Graph* graph);
  ~GraphStorage();
  static GraphStorage& of(Graph& graph) { return *graph.storage_; }

  // Nodes.
  Node* node(std::uint32_t id) { return chunks[id >> kChunkBits].nodes + (id & (kChunkSize - 1)); }
  NodeName& name(const Node& node) { return chunks[node.id_ >> kChunkBits].names[node.id_ & (kChunkSize - 1)]; }
  Node* new_node();
  void link_before(Node* node, Node* next);
  void unlink(Node* node);
  void label(Node* node);
  void relabel(Node* node);
  std::uint32_t& count_of(Op op, Symbol target) {
    const std::uint64_t key = count_key(op, target);
    std::uint32_t* known = counts.find(key);
    return known ? *known : first_count_of(op, key);
  }
  std::uint32_t& first_count_of(Op op, std::uint64_t key);
  static std::uint64_t count_key(Op op, Symbol target) { return (static_cast<std::uint64_t>(op) << 32) | target.id(); }

  static constexpr std::size_t kMostKwargs = 0xffff;
  // Arguments. A node's block holds args then kwargs, followed by the keyword names.
  static std::size_t block_bytes(std::size_t size, std::size_t kwargs) {
    return block_bytes(ArgumentBlock::bytes(size) + kwargs * sizeof(Symbol));
  }
  ArgumentBlock* allocate_block(Node* user, std::size_t size, std::size_t kwargs);
  /// Unlinks the uses in the block, and keeps its memory for others.
  void release_block(ArgumentBlock* block, std::size_t kwargs);
  template <typename Place>
  void copy_argument(Slot* slot, std::uint32_t index, const Argument& value, Node* user, Place&& place);
  template <typename Place>
  ArgumentBlock* copy_elements(ArgumentSpan elements, Node* user, Place&& place);
  /// Calls `place(Slot*)` for each use in the copy, which is not linked yet. Null when there are no arguments.
  template <typename Place>
  ArgumentBlock* copy_arguments(ArgumentSpan args, const KwargSpan& kwargs, Node* user, Place&& place);
  void set_arguments(Node* node, ArgumentSpan args, const KwargSpan& kwargs);
  void take_arguments(Node* node);
  /// Throws when there are more keyword arguments than a node can hold, or two of one name.
  static void require_holdable(const KwargSpan& kwargs) {
    if (kwargs.size() > kMostKwargs) [[unlikely]]
      throw_uncountable();
    if (kwargs.size() > 1) require_distinct(kwargs);
  }
  static void require_distinct(const KwargSpan& kwargs);
  [[noreturn]] static void throw_uncountable();
  /// Throws when an argument names a node that is erased or of another graph.
  void require_own(const Argument& argument, const Node* user) const;

  // Uses.
  static void append_use(Slot* slot, Node* to, bool first) {
    if (Slot* last = to->last_use_) {
      slot->next = last->next;
      slot->previous = last;
      last->next->previous = slot;
      last->next = slot;
    } else {
      slot->next = slot->previous = slot;
    }
    to->last_use_ = slot;
    slot->value.flags_ = first ? Argument::kFirstUse : 0;
    to->num_users_ += first;
  }
  // The uses of one user are linked one after the other, so a use is its user's first unless the ring's last is by it
  // too.
  static void link_use(Slot* slot) {
    Node* value = slot->value.payload_.node;
    append_use(slot, value, !value->last_use_ || value->last_use_->user() != slot->user());
  }
  static void unlink_use(Slot* slot);
  template <typename Visit>
  static void for_each_use(ArgumentBlock* block, Visit&& visit);
  static void link_all(ArgumentBlock* block);
  /// Makes every list of users again, in the order of the nodes.
  void link_all_anew();
  static bool uses(Node* user, Node* value);
  void move_uses(Node* from, Node* to);
  /// Replaces every use of `from` in `user` by `to`. Uses of other values keep their places in the lists of users.
  void replace_input(Node* user, Node* from, const Argument& to);

  // Insertion point: new nodes go after `anchor` (and become it) or before it.
  void advance_insertion(Node* made);
  Node* insertion_next();
  Node* alive(Node* node, bool backward) const;

  // Hooks (ir/graph_hooks.h). To be called when there are any.
  template <typename Tell>
  void tell(Tell&& tell);
  void tell_created(Node& node);
  void tell_erased(Node& node);
  void tell_changed(std::span<Node* const> nodes);
  void tell_replaced(Node& old, const Argument& by, std::span<Node* const> users);
  /// Throws when an edit was made since that revision.
  void require_unedited(std::uint64_t before, const char* what) const;

  Graph* owner;
  Node* const root = &root_node;  // the sentinel that closes the ring of nodes; not a node of the program
  std::vector<Chunk> chunks;
  std::uint32_t id_count = 0;
  std::size_t live = 0;
  std::size_t placeholders = 0;  // among the live ones
  std::uint64_t revision = 0;
  Node* output = nullptr;
  Node* anchor = nullptr;  // null: the end of the graph
  bool after = false;

  Arena node_arena;
  Arena arena;  // names and arguments
  // Sizes of blocks: multiples of 16 up to 1 KiB, above that powers of two.
  static constexpr std::size_t kSmallBlock = 1024;
  static std::size_t block_bytes(std::size_t bytes) {
    return bytes <= kSmallBlock ? (bytes + 15) & ~std::size_t{15} : std::bit_ceil(bytes);
  }
  static std::size_t size_class(std::size_t bytes) {
    return bytes <= kSmallBlock ? bytes / 16
                                : kSmallBlock / 16 + static_cast<std::size_t>(std::bit_width(bytes / kSmallBlock)) - 1;
  }
  std::array<FreeBlock*, kSmallBlock / 16 + 48> free_blocks{};
  Namespace names;
  FlatMap<std::uint32_t> counts;
  std::vector<std::uint64_t> called;      // the keys of calls in counts, in the order in which they came
  std::vector<std::uint32_t> meta_index;  // by id: 1 + position in `metas`; empty while no node has notes
  ChunkedVector<Meta> metas;
  std::vector<GraphHooks*> hooks;  // null: removed while they are told
  int telling = 0;

  Node root_node;
};

template <typename Visit>
void GraphStorage::for_each_use(ArgumentBlock* block, Visit&& visit) {
  for (Slot *slot = block->slots(), *end = slot + block->size; slot != end; ++slot) {
    if (slot->value.is_node()) {
      visit(slot);
    } else if (slot->value.is_container()) {
      for_each_use(slot->value.payload_.block, visit);
    }
  }
}

template <typename Place>
void GraphStorage::copy_argument(Slot* slot, std::uint32_t index, const Argument& value, Node* user, Place&& place) {
  Argument& copy = (new (slot) Slot)->value;
  copy.kind_ = value.kind_;
  copy.index_ = index;
  copy.payload_ = value.payload_;
  if (value.is_node()) {
    place(slot);
  } else if (value.is_container()) [[unlikely]] {
    copy.payload_.block = copy_elements(value.elements(), user, place);
  }
}

template <typename Place>
ArgumentBlock* GraphStorage::copy_elements(ArgumentSpan elements, Node* user, Place&& place) {
  ArgumentBlock* block = allocate_block(user, elements.size(), 0);
  std::uint32_t index = 0;
  for (const Argument& element : elements) {
    copy_argument(block->slots() + index, index, element, user, place);
    ++index;
  }
  return block;
}

template <typename Place>
ArgumentBlock* GraphStorage::copy_arguments(ArgumentSpan args, const KwargSpan& kwargs, Node* user, Place&& place) {
  if (kwargs.empty()) return args.empty() ? nullptr : copy_elements(args, user, place);
  const std::size_t size = args.size() + kwargs.size();
  ArgumentBlock* block = allocate_block(user, size, kwargs.size());
  Symbol* keywords = reinterpret_cast<Symbol*>(block->slots() + size);
  std::uint32_t index = 0;
  const auto put = [&](const Argument& value) {
    copy_argument(block->slots() + index, index, value, user, place);
    ++index;
  };
  for (const Argument& value : args) put(value);
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    put(kwargs.value(i));
    new (keywords + i) Symbol(kwargs.name(i));
  }
  return block;
}

}  // namespace fx::internal
