// Which patterns of a set may start at a node. Internal to matchers/ and rewriter/.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <fxgraph/matchers/compiled_pattern.h>
#include <fxgraph/matchers/forms.h>
#include <fxgraph/ops/schema_registry.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {

/// From the opcode and target of a node, of one of its operands, of one of that one's, and so on, to the patterns that
/// may start there: one tree of questions for all patterns, so that patterns which begin alike are asked about once.
class AnchorIndex {
 public:
  /// Adds pattern number `id`. Patterns are asked for in the order of their numbers.
  void add(std::uint32_t id, const PatternFacts& facts, const SearchPlan& plan);
  /// Operands may be what forms say, too.
  void see_forms(const Forms& forms) { forms_ = &forms; }

  /// Fills `ids` with the patterns that may start at `node`, in order. For all nodes of a graph see AnchorSweep.
  void candidates(const Node& node, std::vector<std::uint32_t>& ids) const;
  /// True when some pattern may start at a node with this opcode and target, as far as these say.
  bool starts_at(const Node& node) const;

 private:
  friend class AnchorSweep;

  static constexpr std::uint64_t key(Op op, Symbol target) {
    return (static_cast<std::uint64_t>(op) << 32) | target.id();
  }
  static std::uint64_t key_of(const TargetKey& wanted);

  /// What a node calls as far as its target says.
  struct Called {
    std::uint64_t key = 0;
    bool plain = true;  ///< false: it may call others of those that the index knows
  };
  Called called(const Node& node) const {
    const Op op = node.op();
    if (op != Op::call_function && op != Op::call_method) return {key(op, node.target())};
    const TargetInfo& info = target_info(node.target());
    const std::uint64_t own = key(op, op == Op::call_function ? info.name : node.target());
    if (op == Op::call_function && info.exact) return {own};
    if (op == Op::call_function && !info.overloads->empty()) return {own, packets_.find(own) == nullptr};
    return {own, candidate_overloads(op, node.target()).empty()};
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

  /// True when the node is not only what its target says.
  bool has_forms(const Node& node) const { return forms_ && !forms_->forms_of(node).empty(); }
  std::uint32_t root_of(std::uint64_t key) const {
    const std::uint32_t* at = roots_.find(key);
    return at ? *at : 0;
  }
  template <typename Visit>
  void for_each_root(const Node& node, const Called& own, Visit&& visit) const;
  void add_below(std::uint32_t tree, std::uint32_t id, const PatternFacts& facts, std::uint32_t call, int questions);
  std::uint32_t root_for(const TargetKey& wanted);
  std::uint32_t branch(std::uint32_t tree, std::uint32_t position, std::uint64_t key);
  void collect(std::uint32_t tree, const Node* node, std::vector<std::uint32_t>& ids) const;
  void collect_all(std::uint32_t tree, std::vector<std::uint32_t>& ids) const;

  FlatMap<std::uint32_t> roots_;         // opcode and target -> position in trees_
  FlatMap<std::uint8_t> packets_;        // operators of which some overload other than their default has a root
  std::vector<Tree> trees_ = {Tree{}};   // the first stands for none
  std::vector<std::uint32_t> anywhere_;  // patterns whose start is no list of operators
  const Forms* forms_ = nullptr;
};

}  // namespace fx::internal
