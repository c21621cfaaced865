// Which patterns of a set may start at a node. Internal to matchers/ and rewriter/.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <fxgraph/matchers/compiled_pattern.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {

/// From the opcode and target of a node, of one of its operands, of one of that one's, and so on, to the patterns that
/// may start there: one tree of questions for all patterns, so that patterns which begin alike are asked about once.
class AnchorIndex {
 public:
  /// `normalized`: what a node calls is the operator that it stands for, and all patterns are compiled so.
  explicit AnchorIndex(bool normalized = false) : normalized_(normalized) {}

  /// Adds pattern number `id`. Patterns are asked for in the order of their numbers.
  void add(std::uint32_t id, const PatternFacts& facts, const SearchPlan& plan);

  /// Fills `ids` with the patterns that may start at `node`, in order. For all nodes of a graph see AnchorSweep.
  void candidates(const Node& node, std::vector<std::uint32_t>& ids) const;
  /// True when some pattern may start at a node with this opcode and target, as far as these say.
  bool starts_at(const Node& node) const { return !anywhere_.empty() || root_of(key(node)) != 0; }

 private:
  friend class AnchorSweep;

  static constexpr std::uint64_t key(Op op, Symbol target) {
    return (static_cast<std::uint64_t>(op) << 32) | target.id();
  }
  std::uint64_t key(const Node& node) const {
    if (!normalized_) return key(node.op(), node.target());
    const TargetKey called = normalized_key(node);
    return key(called.op, called.target);
  }

  /// Patterns whose questions end here, and the next question for the others: is the operand at `position` a `key`?
  struct Tree {
    struct Branch {
      std::uint32_t position;
      std::uint32_t tree;
      std::uint64_t key;
    };
    std::uint64_t key;  // of the nodes that these questions are about
    std::vector<std::uint32_t> ids;
    std::vector<Branch> branches;  // those that ask for one position stand together
  };

  std::uint32_t root_of(std::uint64_t key) const {
    const std::uint32_t* at = roots_.find(key);
    return at ? *at : 0;
  }
  std::uint32_t branch(std::uint32_t tree, std::uint32_t position, std::uint64_t key);
  void collect(std::uint32_t tree, const Node* node, std::vector<std::uint32_t>& ids) const;
  void collect_all(std::uint32_t tree, std::vector<std::uint32_t>& ids) const;

  bool normalized_;
  FlatMap<std::uint32_t> roots_;         // opcode and target -> position in trees_
  std::vector<Tree> trees_ = {Tree{}};   // the first stands for none
  std::vector<std::uint32_t> anywhere_;  // patterns whose start is no list of operators
};

}  // namespace fx::internal
