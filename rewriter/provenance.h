// Provenance: which rule made a node, and from which nodes. Kept in the node's notes under meta_key::kProvenance.
//
// All nodes of one rewrite share one record, which holds names and not nodes: the nodes are gone.
// Thread-safety: that of a shared pointer to const.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

class Provenance {
 public:
  Provenance(Symbol rule, std::span<Node* const> sources);
  Provenance(const Provenance& other) noexcept : record_(other.record_) { ++record_->references; }
  Provenance(Provenance&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  Provenance& operator=(Provenance other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~Provenance() { release(); }

  Symbol rule() const { return record_->rule; }
  /// The names that the nodes had, in graph order.
  std::vector<std::string> sources() const;
  /// `fuse-conv-bn: conv_3, bn_3`.
  std::string str() const;

 private:
  struct Record {
    std::atomic<std::uint32_t> references;
    std::uint32_t size;
    Symbol rule;
    NodeName* names() { return reinterpret_cast<NodeName*>(this + 1); }
  };
  void release() noexcept;

  Record* record_;  // followed by its names; one pointer, so that std::any holds it in place
};

/// What made `node`, as `rule: node, node`; empty when it was not made by a rewrite.
std::string provenance_of(const Node& node);

}  // namespace fx
