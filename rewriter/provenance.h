// Provenance: which rule made a node, and from which nodes. Kept in the node's notes under meta_key::kProvenance.
//
// All nodes of one rewrite share one record, which holds names and not nodes: the nodes are gone. Records of one rule
// lie together, so that few are allocated. Thread-safety: that of a shared pointer to const.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

class Provenance {
 public:
  Provenance(const Provenance& other) noexcept : record_(other.record_) {
    record_->piece->references.fetch_add(1, std::memory_order_relaxed);
  }
  Provenance(Provenance&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  Provenance& operator=(Provenance other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~Provenance() {
    if (record_) record_->piece->release(1);
  }

  Symbol rule() const { return record_->rule; }
  /// The names that the nodes had, in graph order.
  std::vector<std::string> sources() const;
  /// `fuse-conv-bn: conv_3, bn_3`.
  std::string str() const;

 private:
  friend class ProvenanceLog;
  /// Memory of many records, which lives as long as any of them.
  struct Piece {
    std::atomic<std::uint32_t> references;
    void release(std::uint32_t count) noexcept;
  };
  struct Record {
    Piece* piece;
    Symbol rule;
    std::uint32_t size;
    NodeName* names() { return reinterpret_cast<NodeName*>(this + 1); }
  };
  explicit Provenance(Record* record) noexcept : record_(record) {}

  Record* record_;  // followed by its names; one pointer, so that std::any holds it in place
};

/// Writes the records of one rule. Thread-safety: none.
class ProvenanceLog {
 public:
  explicit ProvenanceLog(Symbol rule) : rule_(rule) {}
  ProvenanceLog(const ProvenanceLog&) = delete;
  ~ProvenanceLog() { leave(); }

  /// Begins a record of these sources. O(sources); allocates for one in about a hundred.
  void add(std::span<Node* const> sources);
  /// The newest record, which must be there.
  Provenance last() {
    ++given_;
    return Provenance(record_);
  }

 private:
  void leave();

  Symbol rule_;
  Provenance::Piece* piece_ = nullptr;
  Provenance::Record* record_ = nullptr;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::size_t bytes_ = 256;  // of the next piece
  std::uint32_t given_ = 0;  // references to the piece, which counts on as many as there may be until it is left
};

/// What made `node`, as `rule: node, node`; empty when it was not made by a rewrite.
std::string provenance_of(const Node& node);

}  // namespace fx
