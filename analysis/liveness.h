// Liveness: from where to where in the order of execution each value, and each storage, is needed.
//
//   fx::Liveness live(graph);                  // values: intervals, interference, how many at once
//   fx::Liveness live(graph, shapes);          // storages too: bytes at each node, the peak and what it is made of
//
// A value lives from the node that makes it to its last use, both included: while a node runs, its inputs and its
// result are there together. A value that nothing uses lives while its node runs. The output makes no value.
//
// A storage is one piece of memory, shared by a tensor with its views and in-place results. It lives from the first of
// them to the last use of any. Shapes say which values share storage (TensorInfo::storage); where they do not, alias
// sets do (analysis/effects.h): then an operator that may return a view or a copy counts as a view. Inputs and
// attributes live all the time and are left out of the bytes unless LivenessOptions asks for them. A call of a module
// needs what the operators behind it need at once (LivenessOptions::modules). What an operator that is made of others
// needs inside is not known: unknown() names such calls, and the bytes are at least as many.
//
// Complexity: O(nodes + uses), one pass, to make; interval, last_use, interfere are O(1); at() is O(log nodes) a value.
// Memory: 12 bytes a node. The result is a snapshot of the nodes that are there, valid until the graph is edited: of
// later ones, or of those of another graph, nothing may be asked. The graph must outlive it. Thread-safety: const
// functions may run on several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// Places in the order of the graph, from 0; both ends belong to it.
struct Interval {
  /// The first and the last place.
  /// @{
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  /// @}

  /// Both ends count: intervals that meet at one place overlap.
  /// @{
  bool contains(std::uint32_t place) const { return begin <= place && place <= end; }
  bool overlaps(const Interval& other) const { return begin <= other.end && other.begin <= end; }
  /// @}
  /// Equal when both ends are.
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// What counts as memory, and how it is counted.
struct LivenessOptions {
  bool count_inputs = false;      ///< bytes of placeholders, held by the caller all the time
  bool count_attributes = false;  ///< bytes of parameters and buffers, held by the module all the time
  std::int64_t alignment = 64;    ///< storages are rounded up to this, as LibTorch's CPU allocator does
  /// Alias sets made before; else they are computed, with modules making new storage.
  const Effects* effects = nullptr;
  /// What is known of the modules that are called; null: nothing.
  const ModuleInfo* modules = nullptr;
};

/// One piece of memory and from where to where it is needed.
struct Storage {
  /// Who holds it: the run itself, the caller, or the module.
  enum class Kind : std::uint8_t { activation, input, attribute };
  Node* base = nullptr;          ///< the first node whose value lies in it
  std::int64_t bytes = 0;        ///< rounded up to LivenessOptions::alignment
  Interval interval;             ///< over the whole run for inputs and attributes
  Kind kind = Kind::activation;  ///< of what made it
  bool counted = true;           ///< part of the bytes; see LivenessOptions
};

/// The most bytes that are live at once, and where.
struct MemoryPeak {
  Node* node = nullptr;    ///< while it runs; null in an empty graph
  std::int64_t bytes = 0;  ///< of the counted storages, while that node runs
};

/// Intervals of values and, with shapes, of storages; see the top of this file.
class Liveness {
 public:
  class LiveRange;

  /// Intervals of values only: without shapes there are no storages and no bytes.
  explicit Liveness(const Graph& graph);
  /// The same with storages. `shapes` and `options` are read during construction only.
  Liveness(const Graph& graph, const Shapes& shapes, const LivenessOptions& options = {});
  /// The same of a program; effects that are not given are worked out with what is known of its modules.
  Liveness(const Program auto& program, const Shapes& shapes, const LivenessOptions& options = {})
      : Liveness(program.graph(), shapes,
                 with_modules(internal::with_effects(options, Effects(program)), module_info(program))) {}

  // ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────
  /// Where `node` stands in the order of the graph, from 0.
  std::uint32_t place(const Node& node) const { return place_[node.id()]; }
  /// The node at a place below num_places().
  Node& node_at(std::uint32_t place) const { return *graph_->node_by_id(ids_[place]); }
  /// How many nodes the graph had.
  std::uint32_t num_places() const { return static_cast<std::uint32_t>(ids_.size()); }
  /// From the place of the node to that of its last use.
  Interval interval(const Node& value) const { return {place(value), last_[0][place(value)]}; }
  /// The last node that uses `value`; itself when nothing does.
  Node& last_use(const Node& value) const { return node_at(interval(value).end); }
  /// True from the node that makes `value` to its last use, both included.
  bool is_live_at(const Node& value, const Node& at) const { return interval(value).contains(place(at)); }
  /// True when both values are needed at once, so that they cannot share a register or buffer.
  bool interfere(const Node& a, const Node& b) const { return interval(a).overlaps(interval(b)); }
  /// The values that are live while `node` runs, in graph order. Nothing is stored per node: they are found as one
  /// iterates.
  LiveRange at(const Node& node) const;
  /// The most values that are live at once, and the first node where they are.
  std::uint32_t peak_live() const { return peak_live_; }
  /// The first node where peak_live() values are live; null in an empty graph.
  Node* peak_live_node() const { return graph_->empty() ? nullptr : &node_at(peak_live_place_); }

  // ── Storages (with shapes) ───────────────────────────────────────────────────────────────────────────────────────
  /// All storages with a known size, by the place of their first value. Empty without shapes.
  std::span<const Storage> storages() const { return storages_; }
  /// The storages that `node` makes, returns or reads, as indices into storages().
  std::span<const std::uint32_t> touched_storages(const Node& node) const;
  /// Bytes live while the node at each place runs.
  std::span<const std::int64_t> bytes() const { return bytes_; }
  /// Bytes of the counted storages that are live while `node` runs; 0 without shapes.
  std::int64_t bytes_at(const Node& node) const { return bytes_.empty() ? 0 : bytes_[place(node)]; }
  /// The first place where the most bytes are live; zero bytes at no node without shapes.
  MemoryPeak peak() const { return peak_; }
  /// Bytes that the call needs beside the storages, for what it computes inside.
  std::int64_t inside(const Node& node) const { return inside_.empty() ? 0 : inside_[place(node)]; }
  /// The calls that may need more: `lstm`, or inside of what a module computes, `encoder/lstm`.
  const std::vector<std::string>& unknown() const { return unknown_; }
  /// The counted storages that are live while `node` runs, largest first; of one size as in storages(). O(storages).
  std::vector<const Storage*> storages_at(const Node& node) const;

  /// The graph that was given, which must still be there and unchanged.
  const Graph& graph() const { return *graph_; }

 private:
  friend class StorageTable;
  static constexpr std::uint32_t kFanout = 64;

  void find_intervals();
  void count_live();
  void build_index();
  static LivenessOptions with_modules(LivenessOptions options, const ModuleInfo& made) {
    if (!options.modules) options.modules = &made;
    return options;
  }
  void sum_bytes();
  void add_inside(const Shapes& shapes, const LivenessOptions& options);
  std::uint32_t next_live(std::uint32_t from, std::uint32_t at) const;

  const Graph* graph_;
  std::vector<std::uint32_t> ids_;    // by place
  std::vector<std::uint32_t> place_;  // by id
  // last_[0]: place of the last use, by place of the value. last_[k]: the largest of kFanout entries of last_[k - 1].
  std::vector<std::vector<std::uint32_t>> last_;
  std::uint32_t peak_live_ = 0, peak_live_place_ = 0;

  std::vector<Storage> storages_;
  std::vector<std::uint32_t> touched_starts_, touched_;  // by id
  std::vector<std::int64_t> bytes_, inside_;             // by place
  std::vector<std::string> unknown_;
  MemoryPeak peak_;
};

/// The values that are live at one node, found while iterating; the analysis must outlive it.
class Liveness::LiveRange {
 public:
  /// Goes forward once, in graph order.
  class iterator {
   public:
    /// As the standard library wants it of an input iterator.
    /// @{
    using value_type = Node;
    using difference_type = std::ptrdiff_t;
    using reference = Node&;
    using iterator_category = std::input_iterator_tag;
    iterator(const Liveness* live, std::uint32_t place, std::uint32_t at) : live_(live), place_(place), at_(at) {}
    Node& operator*() const { return live_->node_at(place_); }
    Node* operator->() const { return &**this; }
    iterator& operator++() {
      place_ = live_->next_live(place_ + 1, at_);
      return *this;
    }
    bool operator==(const iterator& other) const { return place_ == other.place_; }
    /// @}

   private:
    const Liveness* live_;
    std::uint32_t place_, at_;
  };

  /// A range for `for` loops; the nodes come as `Node&`.
  /// @{
  iterator begin() const { return {live_, live_->next_live(0, at_), at_}; }
  iterator end() const { return {live_, at_ + 1, at_}; }
  /// @}

 private:
  friend class Liveness;
  LiveRange(const Liveness* live, std::uint32_t at) : live_(live), at_(at) {}
  const Liveness* live_;
  std::uint32_t at_;
};

inline Liveness::LiveRange Liveness::at(const Node& node) const { return {this, place(node)}; }

}  // namespace fx
