// The search for one pattern in one graph. Internal to matchers/.
//
// A backtracking machine without recursion over the graph: goals (this pattern node against that value) wait on a list
// whose tail is shared, so that a choice point need only remember the list's head; bindings are undone from a trail.
// Choices are the alternatives of a one_of, the two orders of commutative operands, how far to see through copies or to
// follow a path, which element of an unordered list is which, and the nodes to go on to when a plan leaves the anchor's
// operands. next() goes through all of them, so every way to match is found. What must not match is looked at when all
// else is bound, by a search of its own above the choices made so far.
//
// Cost: O(pattern) per anchor without choices; all memory is reused from anchor to anchor.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <fxgraph/matchers/compiled_pattern.h>
#include <fxgraph/matchers/dominator_walk.h>
#include <fxgraph/matchers/forms.h>

namespace fx::internal {

/// What a pattern node is compared with: a node, another argument, or nothing (an argument that is not there).
struct Value {
  Node* node = nullptr;
  const Argument* argument = nullptr;

  bool missing() const { return !node && !argument; }
  Argument copy() const { return node ? Argument(node) : argument ? *argument : Argument(); }
};

/// Why a comparison failed; explain.cc puts it into words.
enum class Mismatch : std::uint8_t {
  opcode_or_target,
  not_a_node,
  literal,
  kind,
  other_value,
  uses,
  condition,
  arity,
  keyword,
  not_default,
  missing,
  negation,
  tensor,  ///< detail: TensorPart
  constant,
  path,
  no_user,  ///< the value of a plan's step has no user that the pattern could be
};

/// Which part of a tensor test failed.
enum class TensorPart : std::uint32_t { unknown, dtype, device, rank };

class Reading;
class TrackedEffects;

/// Told about every failed comparison when one is set; costs one test on the failing path otherwise.
class FailureObserver {
 public:
  virtual ~FailureObserver() = default;
  /// `pattern` did not fit `value`, an argument of `user` (null for the anchor); `detail` depends on the reason. True
  /// lets the search go on as if that had fitted, without what lies below.
  virtual bool failed(std::uint32_t pattern, const Value& value, const Node* user, Mismatch why,
                      std::uint32_t detail) = 0;
  /// How many failures were let pass, and back to when there were fewer: the search takes another way.
  virtual std::size_t waived() const = 0;
  virtual void back_to(std::size_t waived) = 0;
};

class Engine {
 public:
  Engine(CompiledPattern& program, const Graph& graph, const FindOptions& options, FindStats& stats);

  void set_plan(const SearchPlan& plan) { plan_ = &plan; }
  /// Hands over what follows edits; without it the engine makes its own when somebody asks.
  void set_effects(TrackedEffects& effects) { followed_ = &effects; }
  void set_observer(FailureObserver* observer) { observer_ = observer; }
  /// A call of the pattern may be a form of a value, too.
  void see_forms(const Forms& forms) { forms_ = forms.size() > 0 ? &forms : nullptr; }

  /// Begins a search with the plan's anchor at `anchor`.
  void start(Node& anchor);
  /// Goes to the next way to match; false when there is none, or the budget is used up.
  bool next();

  /// To be called when the graph has changed between two searches.
  void forget_scans() {
    scanned_.assign(scanned_.size(), false);
    constant_.clear();
    effects_.reset();
  }

  /// Gives the next search the steps of a first one.
  void renew_budget();

  bool is_bound(std::uint32_t pattern) const { return slots_[pattern].bound; }
  const Value& value(std::uint32_t pattern) const { return slots_[pattern].value; }
  std::uint8_t alternative(std::uint32_t pattern) const { return alternatives_[pattern]; }
  std::size_t depth() const { return bound_; }
  bool exhausted() const { return steps_left_ == 0; }
  const Shapes* shapes() const { return options_.shapes; }
  /// Of the graph, storage known.
  const TrackedEffects& effects() const;

  /// Nodes that were seen through or lie on a path, each with the pattern node that let it.
  const std::vector<std::pair<std::uint32_t, Node*>>& interior() const { return interior_; }
  /// The nodes that the pattern's operators matched and the interior, each once, in graph order. Valid until the next
  /// call.
  const std::vector<Node*>& matched_nodes();
  /// A user outside the match of an inner value, with that value; nulls when all are contained.
  std::pair<Node*, Node*> escape();
  /// All of those, one user for each value.
  std::vector<std::pair<Node*, Node*>> escapes();

 private:
  static constexpr std::uint32_t kNoGoal = ~std::uint32_t{0};

  struct Slot {
    Value value;
    bool bound = false;
  };

  struct Goal {
    std::uint32_t pattern;
    std::uint32_t next;
    Value value;
    const Node* user;
  };

  struct Choice {
    enum class Kind : std::uint8_t { alternatives, swap, users, scan, see_through, path, pick, forms };
    Kind kind;
    std::uint32_t pattern;
    std::uint32_t goals;      // head of the list
    std::uint32_t num_goals;  // storage in use
    std::uint32_t trail;
    std::uint32_t step;
    std::uint32_t tried;     // alternatives, scanned nodes or list elements
    std::uint32_t interior;  // how many stay when this way is left
    std::uint32_t picks;
    std::uint32_t extent;  // of a pick: which element of the pattern; of a path: which walk
    std::size_t waived;
    Value value;
    const Node* user;
    UserRange::iterator users;
  };

  template <typename Visit>
  void for_each_escape(Visit&& visit);
  bool run();
  bool backtrack();
  bool resume(Choice& choice);
  bool begin(Choice::Kind kind, const Goal& goal);
  bool see_through(Choice& choice);
  bool follow_path(Choice& choice);
  bool pick(std::uint32_t choice);
  bool match_form(Choice& choice);
  std::size_t num_users(const Node& node) const;
  bool is_same_node(const Value& a, const Value& b) const {
    return forms_ && a.node && b.node && &forms_->standing(*a.node) == &forms_->standing(*b.node);
  }
  bool fits_below(std::uint32_t pattern, const Value& value);
  bool negations_hold();
  bool go_on();
  bool can_go_on(std::uint32_t call, const Value& via);
  bool reach_goal(const Goal& goal);

  bool enter(std::uint32_t pattern, const Value& value, const Node* user, const SchemaType* type = nullptr);
  bool enter_literal(std::uint32_t pattern, const Value& value, const Node* user, const SchemaType* type);
  bool enter_hole(std::uint32_t pattern, const Value& value, const Node* user);
  bool match_call(std::uint32_t pattern, Node& node, const Node* user);
  bool match_operands(std::uint32_t pattern, Node& node, const GivenOperands& given, bool swapped);
  bool match_unmentioned(std::uint32_t pattern, Node& node, const GivenOperands& operands, bool swapped);
  bool match_unschemed(std::uint32_t pattern, Node& node, const GivenOperands& operands);
  bool match_sequence(std::uint32_t pattern, const Value& value, const Node* user);
  bool fits_sequence(std::uint32_t pattern, const Value& value, const Node* user);
  bool bind_tail(std::uint32_t tail, std::vector<Argument> elements, const Node* user);
  bool fits_tensor(std::uint32_t pattern, const Value& value, const Node* user);
  bool is_constant(const Node& node);
  bool bind(std::uint32_t pattern, const Value& value, const Node* user) {
    if (program_.is_tested(pattern) && !passes_tests(pattern, value, user)) return false;
    slots_[pattern] = {value, true};
    trail_[bound_++] = pattern;
    return true;
  }
  bool passes_tests(std::uint32_t pattern, const Value& value, const Node* user);
  bool same_value(std::uint32_t pattern, const Value& value) const;

  void push_goal(std::uint32_t pattern, const Value& value, const Node* user);
  Choice& push_choice(Choice::Kind kind, std::uint32_t pattern, const Value& value, const Node* user);
  void undo_to(std::uint32_t trail) {
    while (bound_ > trail) slots_[trail_[--bound_]].bound = false;
  }
  const std::vector<Node*>& scan_list(std::uint32_t pattern);
  bool fail(std::uint32_t pattern, const Value& value, const Node* user, Mismatch why, std::uint32_t detail = 0);

  CompiledPattern& program_;
  const Graph& graph_;
  const FindOptions& options_;
  FindStats& stats_;
  const SearchPlan* plan_ = nullptr;
  FailureObserver* observer_ = nullptr;
  const Forms* forms_ = nullptr;  // null: there are none
  std::uint64_t steps_left_ = 0;

  std::vector<Slot> slots_;  // by pattern node
  std::vector<std::uint8_t> alternatives_;
  std::vector<std::uint32_t> trail_;  // the pattern nodes bound, the first `bound_` of them: none is bound twice
  std::uint32_t bound_ = 0;
  std::vector<Goal> goals_;
  std::vector<Choice> choices_;
  std::uint32_t goal_ = kNoGoal;
  std::uint32_t step_ = 0;
  std::uint32_t floor_ = 0;  // choices of an outer search, and what it had bound
  std::uint32_t base_ = 0;
  std::vector<std::pair<std::uint32_t, Node*>> interior_;
  std::vector<std::uint32_t> picks_;  // elements of the list being picked from that are taken
  std::deque<DominatorWalk> walks_;   // the first `num_walks_` belong to choices
  std::uint32_t num_walks_ = 0;
  std::deque<Argument> made_;           // values that no node holds: sizes, tails
  std::vector<std::uint8_t> constant_;  // by node id: 0 not known, 1 no, 2 yes
  TrackedEffects* followed_ = nullptr;
  mutable std::shared_ptr<const TrackedEffects> effects_;  // made when somebody asks
  bool fresh_ = false;
  std::vector<std::vector<Node*>> scan_lists_;  // by pattern node, filled on first use
  std::vector<char> scanned_;
  std::vector<Node*> matched_;
  bool matched_known_ = false;
};

/// Calls `visit(Node&)` for the nodes that may be anchors of the plan, in graph order, until it returns false.
template <typename Visit>
void for_each_candidate(const Graph& graph, CompiledPattern& program, const SearchPlan& plan, Visit&& visit) {
  std::size_t left = plan.candidates;
  if (plan.impossible) return;
  const bool listed = !plan.keys.empty();
  for (Node& node : const_cast<Graph&>(graph).nodes()) {
    if (listed) {
      const TargetKey key{node.op(), node.target()};
      bool found = false;
      for (const TargetKey& wanted : plan.keys) found |= wanted == key;
      if (!found) continue;
    } else if (!program.may_be(plan.anchor, node)) {
      continue;
    }
    if (!visit(node) || --left == 0) return;
  }
}

/// True when the literals are equal: of one kind and value, element by element in lists and tuples.
bool equal_literals(const Argument& pattern, const Argument& found, double tolerance, bool ignore);

class MatchPool;

/// Builds Match objects.
struct MatchBuilder {
  static Match make(const CompiledPattern& program, Engine& engine);
  static void read(Match& match, const MatchPool& pool, std::size_t i);
  /// Calls `visit(Argument&)` for the value of each node of the pattern, in order, which it may change.
  template <typename Visit>
  static void for_each_value(Match& match, Visit&& visit) {
    for (Argument& value : match.values_) visit(value);
  }
  /// Makes a match in the reading one in the program, by `translated(Node&)` of each node.
  static void translate(Match& match, std::shared_ptr<const Reading> reading,
                        const std::function<Argument(Node&)>& translated);
  /// From now on the match notes what is asked of its values.
  static void take_notes(Match& match) {
    match.notes_ = true;
    match.asked_.clear();
  }
  /// Notes what was asked for the match's sake beforehand.
  static void add_notes(Match& match, const FactLog& asked) {
    for (const Fact& fact : asked.facts()) match.asked_.note(fact);
  }
  /// What was asked of the match, and by its pattern, of which `match` was found with shapes.
  static const FactLog& asked(const Match& match);
};

}  // namespace fx::internal
