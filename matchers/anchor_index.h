// Which patterns of a set may start at a node. Internal to matchers/ and rewriter/.
#pragma once

#include <cstdint>
#include <vector>

#include "matchers/program.h"
#include "support/flat_map.h"

namespace fx::internal {

/// From the opcode and target of a node, and those of its operands, to the patterns that may start there.
class AnchorIndex {
 public:
  /// Adds pattern number `id`. Patterns are asked for in the order of their numbers.
  void add(std::uint32_t id, Program& program, const SearchPlan& plan);

  /// Fills `ids` with the patterns that may start at `node`, in order.
  void candidates(const Node& node, std::vector<std::uint32_t>& ids) const;
  /// True when some pattern may start at a node with this opcode and target, as far as these say.
  bool starts_at(const Node& node) const { return !anywhere_.empty() || entries_of(node) != nullptr; }

 private:
  static constexpr std::uint64_t key(Op op, Symbol target) {
    return (static_cast<std::uint64_t>(op) << 32) | target.id();
  }

  /// Patterns that start at one operator. One whose operand `position` must be a certain operator waits in that bucket.
  struct Entries {
    struct Bucket {
      std::size_t position;
      std::uint64_t key;
      std::vector<std::uint32_t> ids;
    };
    std::vector<std::uint32_t> always;
    std::vector<Bucket> buckets;         // sorted by position, then key
    std::vector<std::size_t> positions;  // the distinct ones
  };

  const Entries* entries_of(const Node& node) const {
    const std::uint32_t* at = index_.find(key(node.op(), node.target()));
    return at ? &entries_[*at - 1] : nullptr;
  }
  static void add_to_bucket(Entries& entries, std::size_t position, std::uint64_t key, std::uint32_t id);

  FlatMap<std::uint32_t> index_;  // opcode and target -> 1 + position in entries_
  std::vector<Entries> entries_;
  std::vector<std::uint32_t> anywhere_;  // patterns whose start is no list of operators
};

}  // namespace fx::internal
