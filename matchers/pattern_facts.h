// What follows from a pattern for any graph: how each call's arguments bind, where to start, in which order to go on.
// Internal to matchers/ and rewriter/.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/ops/call.h>

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
  /// Of a pattern that outlives it; `commute_all` as FindOptions::commutative.
  explicit PatternFacts(const PatternData& pattern, bool commute_all = false);

  /// Of a pattern node.
  struct Hot {
    Op op = Op::call_function;
    bool any_target = false;
    bool fixed_plan = false;
    bool tested = false;  ///< has a use count or a condition
    bool call = false;
    Symbol single;
  };

  const PatternData* pattern;
  bool commute_all;
  std::uint64_t schemas;  ///< schema_generation() when they were made
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
  bool is_number_first(const PatternNode& call, const OperatorSchema& schema) const;
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

/// What a Pattern holds: it is the same for all its copies.
struct PreparedPattern {
  explicit PreparedPattern(PatternData made) : data(std::move(made)), facts(data) {}
  PreparedPattern(const PreparedPattern&) = delete;

  const PatternData data;
  const PatternFacts facts;
};

}  // namespace fx::internal
