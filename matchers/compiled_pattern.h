// A pattern, prepared: how each call's arguments bind, where to start, and in which order to go on.
// Internal to matchers/.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {

/// An opcode and target, as the index of a graph counts them.
struct TargetKey {
  Op op;
  Symbol target;
  friend bool operator==(const TargetKey&, const TargetKey&) = default;
};

/// One argument that a pattern call mentions.
struct MentionedArgument {
  std::uint32_t pattern = 0;
  std::int32_t position = -1;  ///< in the schema; without one, among the positional arguments; -1: by keyword only
  Symbol keyword{};
  const SchemaType* type = nullptr;  ///< what the schema declares there, if it does; operands that commute have one
};

/// How the arguments of a call of one operator are compared.
struct CallPlan {
  const OperatorSchema* schema = nullptr;  ///< null: arguments are compared as they are written
  std::vector<MentionedArgument> operands;
  std::vector<std::uint16_t> unmentioned;  ///< schema positions that must have their defaults
  std::size_t plain = 0;  ///< a call with at most so many positional arguments and no others has all these defaults
  bool commutes = false;  ///< the first two operands may change places
  bool possible = true;   ///< false: the operator has no argument of a name that the pattern gives
};

/// Where the search goes when everything below the anchor fits: to a call above or beside what is bound already.
struct PlanStep {
  std::uint32_t call;  ///< the pattern node to match next
  std::uint32_t via;   ///< a bound operand of it, whose users are tried; kNoPattern: every node of the graph is
};

struct SearchPlan {
  std::uint32_t anchor = kNoPattern;
  std::vector<TargetKey> keys;  ///< what an anchor may be; empty: ask CompiledPattern::may_be
  std::size_t candidates = 0;   ///< how many nodes the graph has of these; the size of the graph when that is not known
  bool impossible = false;      ///< an operator that must be there is not
  std::vector<PlanStep> steps;
};

/// What the search would otherwise work out anew for each graph. Made once, read by any number of searches and threads;
/// O(pattern).
struct PatternFacts {
  PatternFacts(std::shared_ptr<const PatternData> pattern, const FindOptions& options);

  /// Of a pattern node.
  struct Hot {
    Op op = Op::call_function;
    bool any_target = false;
    bool fixed_plan = false;
    bool tested = false;  ///< has a use count or a condition
    bool call = false;
    Symbol single;
  };

  std::shared_ptr<const PatternData> pattern;
  bool normalize;
  bool commute_all;
  bool has_alternatives = false;
  bool has_negations = false;
  bool has_interior = false;
  bool has_constants = false;
  bool needs_shapes = false;
  bool needs_module_types = false;
  std::vector<Hot> hot;
  std::vector<CallPlan> fixed_plans;
  std::vector<bool> direct;    ///< bound in every match, and reached from the roots by operands alone
  std::vector<bool> required;  ///< bound in every match
  std::vector<std::vector<std::uint32_t>> direct_children;  ///< of direct calls: operands, through lists

  /// Throws Error(invalid_argument) when the pattern asks for what `options` do not know.
  void check(const FindOptions& options) const;
  const PatternNode& node(std::uint32_t i) const { return pattern->nodes[i]; }
  std::size_t size() const { return pattern->nodes.size(); }
  /// False when what fits at a node may depend on nodes at any distance.
  bool is_local() const { return !has_interior && !has_constants; }
  /// How the call's arguments stand to those of an operator, or, without a schema, to a call as it is written.
  CallPlan make_plan(std::uint32_t call, const OperatorSchema* schema) const;
  /// The plan of a call whose operator is known in advance, else null.
  const CallPlan* fixed_plan(std::uint32_t call) const { return hot[call].fixed_plan ? &fixed_plans[call] : nullptr; }
  /// Picks the rarest operator that must be there as the anchor, and orders what follows. O(pattern²) at worst. With
  /// `normalize` the graph does not matter.
  SearchPlan plan(const Graph& graph, std::uint32_t anchor = kNoPattern) const;

 private:
  void find_direct();
  template <typename Visit>
  void for_each_bound(std::uint32_t index, Visit&& visit) const;
  void add_direct_children(std::uint32_t call, std::uint32_t index);
  bool keys_of(std::uint32_t index, std::vector<TargetKey>& keys) const;
  std::size_t count(const Graph& graph, std::uint32_t index, std::vector<TargetKey>& keys) const;
  void reach(std::uint32_t index, std::vector<bool>& reached) const;
  bool next_step(const std::vector<bool>& reached, PlanStep& step) const;
};

/// What `node` calls, whatever its spelling: the operator that it stands for, if there is one.
TargetKey normalized_key(const Node& node);

/// A pattern's facts with caches for one graph. Used by one thread at a time.
class CompiledPattern {
 public:
  CompiledPattern(std::shared_ptr<const PatternData> pattern, const FindOptions& options)
      : CompiledPattern(std::make_shared<PatternFacts>(std::move(pattern), options), options) {}
  /// Checks the options, which must outlive it.
  CompiledPattern(std::shared_ptr<const PatternFacts> facts, const FindOptions& options);

  const PatternFacts& facts() const { return *facts_; }
  const PatternData& pattern() const { return *pattern_; }
  const std::shared_ptr<const PatternData>& shared_pattern() const { return facts_->pattern; }
  const PatternNode& node(std::uint32_t i) const { return pattern_->nodes[i]; }
  std::size_t size() const { return pattern_->nodes.size(); }
  bool has_alternatives() const { return facts_->has_alternatives; }
  bool has_negations() const { return facts_->has_negations; }
  /// True when matches may hold nodes that no single pattern node stands for: those seen through, and paths.
  bool has_interior() const { return facts_->has_interior; }

  /// What `node` calls: with FindOptions::normalize the operator that it stands for.
  TargetKey key(const Node& node) const {
    if (normalize_) [[unlikely]]
      return normalized_key(node);
    return {node.op(), node.target()};
  }
  /// True when a call pattern's opcode and targets accept `key`.
  bool accepts(std::uint32_t call, const TargetKey& key) {
    const PatternFacts::Hot& hot = hot_[call];
    if (key.op != hot.op) return false;
    if (!hot.single.empty()) return key.target == hot.single;
    return hot.any_target || accepts_slowly(call, key.target);
  }
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
  const CallPlan& call_plan(std::uint32_t call, const Node& node, const TargetKey& key) {
    return hot_[call].fixed_plan ? fixed_plans_[call] : other_plan(call, node, key);
  }
  SearchPlan plan(const Graph& graph, std::uint32_t anchor = kNoPattern) const { return facts_->plan(graph, anchor); }

 private:
  const CallPlan& other_plan(std::uint32_t call, const Node& node, const TargetKey& key);
  bool accepts_slowly(std::uint32_t call, Symbol target);
  bool accepts_type(const TargetSet& types, Symbol path) const;

  std::shared_ptr<const PatternFacts> facts_;
  const PatternData* pattern_;  // of the facts, as are the next
  const PatternFacts::Hot* hot_;
  const CallPlan* fixed_plans_;
  const FindOptions& options_;
  bool normalize_;
  FlatMap<std::uint8_t> accepted_;  // (pattern node, target) -> 1 no, 2 yes
  std::unordered_map<std::uint64_t, CallPlan> other_plans_;
};

}  // namespace fx::internal
