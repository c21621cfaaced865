// A pattern, prepared: how each call's arguments bind, where to start, and in which order to go on.
// Internal to matchers/.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/ops/call.h>
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
struct OperandPlan {
  const OperatorSchema* schema = nullptr;  ///< null: arguments are compared as they are written
  std::vector<MentionedArgument> operands;
  std::vector<std::uint16_t> unmentioned;  ///< schema positions that must have their defaults
  std::size_t plain = 0;  ///< a call with at most so many positional arguments and no others has all these defaults
  bool commutes = false;  ///< the first two operands may change places
  bool possible = true;   ///< false: the operator has no argument of a name that the pattern gives
};

inline bool is_function_or_method(Op op) { return op == Op::call_function || op == Op::call_method; }

/// What the operands of one node are compared with.
struct GivenOperands {
  const OperandPlan& plan;
  ArgumentSpan args;
  KwargSpan kwargs;
};

/// How nodes of one opcode and target stand to a call of the pattern.
enum class Fit : std::uint8_t {
  unknown,
  no,
  written,  ///< such nodes fit, with the arguments that they are written with
  asked,    ///< what the node calls decides
};

/// Where the search goes when everything below the anchor fits: to a call above or beside what is bound already.
struct PlanStep {
  std::uint32_t call;  ///< the pattern node to match next
  std::uint32_t via;   ///< a bound operand of it, whose users are tried; kNoPattern: every node of the graph is
};

struct SearchPlan {
  std::uint32_t anchor = kNoPattern;
  std::vector<TargetKey> keys;  ///< what an anchor is written as in the graph; empty: ask CompiledPattern::may_be
  std::size_t candidates = 0;   ///< how many nodes the graph has of these; the size of the graph when that is not known
  bool impossible = false;      ///< an operator that must be there is not
  std::vector<PlanStep> steps;
};

/// The functions and methods that a graph calls, each spelling once: what the patterns of a set have in common.
struct PresentCalls {
  explicit PresentCalls(const Graph& searched);
  const Graph& graph;
  std::vector<TargetKey> keys;
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
  bool commute_all;
  bool has_alternatives = false;
  bool has_negations = false;
  bool has_interior = false;
  bool has_constants = false;
  bool needs_shapes = false;
  bool needs_module_types = false;
  std::vector<Hot> hot;
  std::vector<OperandPlan> fixed_plans;
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
  OperandPlan make_plan(std::uint32_t call, const OperatorSchema* schema) const;
  /// How nodes that are written with this opcode and target stand to the call.
  Fit fit(std::uint32_t call, Op op, Symbol target) const;
  /// True when the call, of a node that `fit` leaves to it, is one that the pattern means.
  bool means(std::uint32_t call, const Call& found) const;
  /// The operators that a call pattern means, by operator_name, and what else it takes as it is written; false when
  /// that is no finite list.
  bool names_of(std::uint32_t index, std::vector<TargetKey>& names) const;
  /// The plan of a call whose operator is known in advance, else null.
  const OperandPlan* fixed_plan(std::uint32_t call) const {
    return hot[call].fixed_plan ? &fixed_plans[call] : nullptr;
  }
  /// Picks the rarest operator that must be there as the anchor, and orders what follows. O(pattern² + distinct targets
  /// of the graph · pattern) at worst.
  SearchPlan plan(const PresentCalls& present, std::uint32_t anchor = kNoPattern) const;

 private:
  void find_direct();
  template <typename Visit>
  void for_each_bound(std::uint32_t index, Visit&& visit) const;
  void add_direct_children(std::uint32_t call, std::uint32_t index);
  bool may_be_counterpart(std::uint32_t call, const OperatorSchema& schema, std::size_t at) const;
  bool keys_of(std::uint32_t index, const PresentCalls& present, std::vector<TargetKey>& keys) const;
  std::size_t count(const PresentCalls& present, std::uint32_t index, std::vector<TargetKey>& keys) const;
  void reach(std::uint32_t index, std::vector<bool>& reached) const;
  bool next_step(const std::vector<bool>& reached, PlanStep& step) const;
};

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

  std::shared_ptr<const PatternFacts> facts_;
  const PatternData* pattern_;  // of the facts, as are the next
  const PatternFacts::Hot* hot_;
  const OperandPlan* fixed_plans_;
  const FindOptions& options_;
  FlatMap<std::uint8_t> fits_;  // pattern node, opcode and target -> Fit
  std::unordered_map<std::uint64_t, OperandPlan> other_plans_;
  mutable FlatMap<std::uint32_t> calls_of_;          // node -> position in calls_
  mutable std::unique_ptr<std::deque<Call>> calls_;  // made when the first is asked for
  mutable std::uint64_t calls_revision_ = 0;
};

}  // namespace fx::internal
