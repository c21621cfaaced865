// A pattern on its way through one graph: its facts, and what has been asked about the graph. Internal to matchers/.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/support/chunked_vector.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {

/// A pattern's facts with caches for one graph. Used by one thread at a time.
class CompiledPattern {
 public:
  /// Checks the options, which must outlive it.
  CompiledPattern(const Pattern& pattern, std::shared_ptr<const PatternFacts> facts, const FindOptions& options);
  CompiledPattern(const Pattern& pattern, const FindOptions& options)
      : CompiledPattern(pattern, PatternAccess::facts(pattern, options), options) {}

  const PatternFacts& facts() const { return *facts_; }
  const PatternData& pattern() const { return *pattern_; }
  const std::shared_ptr<const PatternData>& shared_pattern() const { return pattern_; }
  const PatternNode& node(std::uint32_t i) const { return pattern_->nodes[i]; }
  std::size_t size() const { return pattern_->nodes.size(); }
  bool has_alternatives() const { return facts_->has_alternatives; }
  bool has_negations() const { return facts_->has_negations; }
  /// True when matches may hold nodes that no single pattern node stands for: those seen through, and paths.
  bool has_interior() const { return facts_->has_interior; }

  /// True when a call pattern accepts what `node` calls.
  bool accepts(std::uint32_t call, const Node& node) {
    const PatternFacts::Hot& hot = hot_[call];
    if (node.target() == hot.single && node.op() == hot.op) return true;
    return hot.any_target ? node.op() == hot.op : accepts_slowly(call, node);
  }
  /// What `node` calls. Good until the graph changes.
  const Call& called(const Node& node) const;
  /// True when the pattern node, a call or alternatives of calls, may be `node` for all its own target says.
  bool may_be(std::uint32_t index, const Node& node);

  const Shapes* shapes() const { return options_.shapes; }
  /// True when every match binds the node.
  bool is_required(std::uint32_t i) const { return facts_->required[i]; }
  /// True when a value must pass a use count or a condition to be bound.
  bool is_tested(std::uint32_t i) const { return hot_[i].tested; }
  bool is_call(std::uint32_t i) const { return hot_[i].call; }
  /// The value that `node` forwards as it is, null when it computes one of its own.
  Node* forwarded_operand(const Node& node) const;
  /// The arguments of a node that accepts() lets pass, and what they are compared with.
  GivenOperands operands(std::uint32_t call, const Node& node) {
    const PatternFacts::Hot& hot = hot_[call];
    if (hot.fixed_plan && (hot.op != Op::call_function || node.target() == hot.single))
      return {fixed_plans_[call], node.args(), node.kwargs()};
    return other_operands(call, node);
  }

 private:
  GivenOperands other_operands(std::uint32_t call, const Node& node);
  Fit fit(std::uint32_t call, const Node& node);
  bool accepts_slowly(std::uint32_t call, const Node& node);
  bool accepts_type(const TargetSet& types, Symbol path) const;

  std::shared_ptr<const PatternData> pattern_;
  std::shared_ptr<const PatternFacts> facts_;
  const PatternFacts::Hot* hot_;  // of the facts, as are the next
  const OperandPlan* fixed_plans_;
  const FindOptions& options_;
  FlatMap<std::uint8_t> fits_;  // pattern node, opcode and target -> Fit
  std::unordered_map<std::uint64_t, OperandPlan> other_plans_;
  mutable FlatMap<std::uint32_t> calls_of_;             // node -> position in calls_
  mutable std::unique_ptr<ChunkedVector<Call>> calls_;  // made when the first is asked for
  mutable std::uint64_t calls_revision_ = 0;
};

}  // namespace fx::internal
