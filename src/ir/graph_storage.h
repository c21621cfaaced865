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
  std::uint32_t& count_of(Op op, Symbol target) { return counts[count_key(op, target)]; }
  static std::uint64_t count_key(Op op, Symbol target) { return (static_cast<std::uint64_t>(op) << 32) | target.id(); }

  static constexpr std::size_t kMostKwargs = 0xffff;
  // Arguments. A node's block holds args then kwargs, followed by the keyword names.
  static std::size_t block_bytes(std::size_t size, std::size_t kwargs) {
    return block_bytes(ArgumentBlock::bytes(size) + kwargs * sizeof(Symbol));
  }
  ArgumentBlock* allocate_block(Node* user, std::size_t size, std::size_t kwargs);
  void recycle_block(ArgumentBlock* block, std::size_t kwargs);
  void copy_argument(Slot& slot, const Argument& value, Node* user) {
    slot.value.kind_ = value.kind_;
    slot.value.flags_ = 0;
    slot.value.payload_ = value.payload_;
    if (value.is_container()) [[unlikely]]
      copy_elements(slot, value, user);
  }
  void copy_elements(Slot& slot, const Argument& container, Node* user);
  ArgumentBlock* copy_arguments(ArgumentSpan args, const KwargSpan& kwargs, Node* user);
  void set_arguments(Node* node, ArgumentSpan args, const KwargSpan& kwargs);
  void take_arguments(Node* node);
  /// Throws when there are more keyword arguments than a node can hold.
  static void require_countable(const KwargSpan& kwargs) {
    if (kwargs.size() > kMostKwargs) [[unlikely]]
      throw_uncountable();
  }
  [[noreturn]] static void throw_uncountable();
  /// Throws when an argument names a node that is erased or of another graph.
  void require_own(const Argument& argument, const Node* user) const;

  // Uses.
  static void link_use(Slot* slot);
  static void unlink_use(Slot* slot);
  template <typename Visit>
  static void for_each_use(ArgumentBlock* block, Visit&& visit);
  static void link_all(ArgumentBlock* block);
  static void unlink_all(ArgumentBlock* block);
  /// Makes every list of users again, in the order of the nodes.
  void link_all_anew();
  static bool uses(Node* user, Node* value);
  void move_uses(Node* from, Node* to);
  static void append_use(Slot* slot, Node* to, bool first);
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
  void tell_replaced(Node& old, const Argument& by, std::span<Node* const> users);
  /// Throws when an edit was made since that revision.
  void require_unedited(std::uint64_t before, const char* what) const;

  Graph* owner;
  Node* const root = &root_node;  // the sentinel that closes the ring of nodes; not a node of the program
  std::vector<Chunk> chunks;
  std::uint32_t id_count = 0;
  std::size_t live = 0;
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

}  // namespace fx::internal
