#include <fxgraph/ir/graph_order.h>
#include <fxgraph/matchers/engine.h>
#include <fxgraph/matchers/reading.h>

#include <algorithm>

namespace fx::internal {

Engine::Engine(CompiledPattern& program, const Graph& graph, const FindOptions& options, FindStats& stats)
    : program_(program),
      graph_(graph),
      options_(options),
      stats_(stats),
      slots_(program.size()),
      alternatives_(program.has_alternatives() ? program.size() : 0),
      trail_(program.size()) {
  renew_budget();
}

void Engine::renew_budget() {
  steps_left_ = options_.budget ? options_.budget : 20'000'000 + 100 * static_cast<std::uint64_t>(graph_.size());
}

void Engine::start(Node& anchor) {
  undo_to(0);
  choices_.clear();
  goals_.clear();
  picks_.clear();
  if (program_.has_interior()) {
    interior_.clear();
    num_walks_ = 0;
  }
  if (!made_.empty()) made_.clear();
  goal_ = kNoGoal;
  step_ = 0;
  fresh_ = true;
  push_goal(plan_->anchor, {&anchor, nullptr}, nullptr);
}

bool Engine::next() {
  matched_known_ = false;
  const bool found = (fresh_ || backtrack()) && run();
  fresh_ = false;
  return found;
}

bool Engine::run() {
  for (;;) {
    if (steps_left_ == 0) return false;
    --steps_left_;
    bool fits = true;
    if (goal_ != kNoGoal) {
      const Goal goal = goals_[goal_];
      goal_ = goal.next;
      fits = reach_goal(goal);
    } else if (step_ < plan_->steps.size()) {
      fits = go_on();
    } else if (!program_.has_negations() || negations_hold()) {
      return true;
    } else {
      fits = false;
    }
    if (!fits && !backtrack()) return false;
  }
}

bool Engine::reach_goal(const Goal& goal) {
  const PatternNode& pattern = program_.node(goal.pattern);
  switch (pattern.kind) {
    case PatternKind::call:
      if (slots_[goal.pattern].bound)
        return same_value(goal.pattern, goal.value) || fail(goal.pattern, goal.value, goal.user, Mismatch::other_value);
      // Where the search comes from a user, the value may be what a form says.
      if (forms_ && goal.user && !forms_->forms_of(*goal.value.node).empty())
        return resume(push_choice(Choice::Kind::forms, goal.pattern, goal.value, goal.user));
      return match_call(goal.pattern, *goal.value.node, goal.user);
    case PatternKind::one_of: return begin(Choice::Kind::alternatives, goal);
    case PatternKind::transparent: return begin(Choice::Kind::see_through, goal);
    case PatternKind::dominated: return begin(Choice::Kind::path, goal);
    case PatternKind::sequence:
      if (pattern.unordered) return begin(Choice::Kind::pick, goal);
      [[fallthrough]];
    default: return enter(goal.pattern, goal.value, goal.user);
  }
}

// ── Choices ──────────────────────────────────────────────────────────────────────────────────────────────────────────

bool Engine::backtrack() {
  while (choices_.size() > floor_) {
    if (steps_left_ == 0) return false;
    --steps_left_;
    Choice& choice = choices_.back();
    undo_to(choice.trail);
    interior_.resize(choice.interior);
    if (observer_) [[unlikely]]
      observer_->back_to(choice.waived);
    goals_.resize(choice.num_goals);
    goal_ = choice.goals;
    step_ = choice.step;
    if (resume(choice)) return true;
  }
  return false;
}

/// Takes the next way at the newest choice; drops the choice when this is its last. False when that way fails at once.
bool Engine::resume(Choice& choice) {
  const std::uint32_t pattern = choice.pattern;
  const Value value = choice.value;
  const Node* user = choice.user;
  switch (choice.kind) {
    case Choice::Kind::alternatives: {
      const std::vector<std::uint32_t>& ways = program_.node(pattern).args;
      const std::uint32_t way = choice.tried++;
      alternatives_[pattern] = static_cast<std::uint8_t>(way);
      if (choice.tried == ways.size()) choices_.pop_back();
      return enter(ways[way], value, user);
    }
    case Choice::Kind::swap: {
      choices_.pop_back();
      return match_operands(pattern, *value.node, program_.operands(pattern, *value.node), true);
    }
    case Choice::Kind::users: {
      Node& node = *choice.users;
      if (++choice.users == UserRange::iterator()) choices_.pop_back();
      return program_.may_be(pattern, node) && enter(pattern, {&node, nullptr}, user);
    }
    case Choice::Kind::scan: {
      const std::vector<Node*>& nodes = scan_list(pattern);
      Node* node = nodes[choice.tried++];
      if (choice.tried == nodes.size()) choices_.pop_back();
      return enter(pattern, {node, nullptr}, user);
    }
    case Choice::Kind::see_through: return see_through(choice);
    case Choice::Kind::path: return follow_path(choice);
    case Choice::Kind::pick: return pick(static_cast<std::uint32_t>(choices_.size() - 1));
    case Choice::Kind::forms: return match_form(choice);
  }
  return false;
}

/// Tries the node that stands there first, then its forms.
bool Engine::match_form(Choice& choice) {
  const std::uint32_t pattern = choice.pattern;
  const Node* user = choice.user;
  Node* standing = choice.value.node;
  const auto forms = forms_->forms_of(*standing);
  Node* node = choice.tried == 0 ? standing : forms[choice.tried - 1];
  if (choice.tried++ == forms.size()) choices_.pop_back();
  return match_call(pattern, *node, user);
}

bool Engine::can_go_on(std::uint32_t call, const Value& via) {
  if (!via.node) return !scan_list(call).empty();
  return std::any_of(via.node->users().begin(), via.node->users().end(),
                     [&](const Node& user) { return program_.may_be(call, user); });
}

/// The goals are reached: goes on to the next call of the plan.
bool Engine::go_on() {
  const PlanStep step = plan_->steps[step_++];
  if (slots_[step.call].bound) return true;
  if (step.via != kNoPattern && !slots_[step.via].bound) return true;  // below what an observer let pass
  Value via = step.via == kNoPattern ? Value{} : slots_[step.via].value;
  if (forms_ && via.node) via.node = &forms_->standing(*via.node);
  if (observer_ && !can_go_on(step.call, via)) [[unlikely]]
    return fail(step.call, via, nullptr, Mismatch::no_user);
  // Of a value with many users: the nodes with the right operator may be fewer.
  if (via.node && (via.node->num_users() <= 16 || via.node->num_users() < scan_list(step.call).size())) {
    if (!via.node->has_users()) return false;
    Choice& choice = push_choice(Choice::Kind::users, step.call, {}, nullptr);
    choice.users = via.node->users().begin();
    return resume(choice);
  }
  if (scan_list(step.call).empty()) return false;
  return resume(push_choice(Choice::Kind::scan, step.call, {}, nullptr));
}

const std::vector<Node*>& Engine::scan_list(std::uint32_t pattern) {
  scanned_.resize(program_.size());
  scan_lists_.resize(program_.size());
  std::vector<Node*>& nodes = scan_lists_[pattern];
  if (!scanned_[pattern]) {
    scanned_[pattern] = true;
    nodes.clear();
    for (Node& node : const_cast<Graph&>(graph_).nodes()) {
      if (program_.may_be(pattern, node)) nodes.push_back(&node);
    }
  }
  return nodes;
}

void Engine::push_goal(std::uint32_t pattern, const Value& value, const Node* user) {
  goals_.push_back({pattern, goal_, value, user});
  goal_ = static_cast<std::uint32_t>(goals_.size() - 1);
}

Engine::Choice& Engine::push_choice(Choice::Kind kind, std::uint32_t pattern, const Value& value, const Node* user) {
  choices_.push_back({kind,
                      pattern,
                      goal_,
                      static_cast<std::uint32_t>(goals_.size()),
                      bound_,
                      step_,
                      0,
                      static_cast<std::uint32_t>(interior_.size()),
                      static_cast<std::uint32_t>(picks_.size()),
                      0,
                      observer_ ? observer_->waived() : 0,
                      value,
                      user,
                      {}});
  return choices_.back();
}

// ── Complete matches ─────────────────────────────────────────────────────────────────────────────────────────────────

const std::vector<Node*>& Engine::matched_nodes() {
  if (matched_known_) return matched_;
  matched_known_ = true;
  matched_.clear();
  // Backwards: operands are bound after their users, and stand before them.
  for (std::uint32_t i = bound_; i-- > 0;) {
    if (!program_.is_call(trail_[i])) continue;
    // Inputs may be shared by matches, even those that PatternOptions::match_placeholder makes a part of the pattern.
    Node* node = slots_[trail_[i]].value.node;
    if (node->is(Op::placeholder)) continue;
    const Form* form = forms_ ? forms_->form(*node) : nullptr;
    if (!form) matched_.push_back(node);
    if (form) matched_.insert(matched_.end(), form->covers.begin(), form->covers.end());
  }
  for (const auto& [pattern, node] : interior_) matched_.push_back(node);
  const auto disordered = [](const Node* a, const Node* b) { return !a->is_before(*b); };
  if (std::adjacent_find(matched_.begin(), matched_.end(), disordered) == matched_.end()) return matched_;
  std::sort(matched_.begin(), matched_.end(), GraphOrder{});
  matched_.erase(std::unique(matched_.begin(), matched_.end()), matched_.end());
  return matched_;
}

/// Calls `visit(value, user)` for the first escape of each value, until it returns false.
template <typename Visit>
void Engine::for_each_escape(Visit&& visit) {
  const std::vector<Node*>& nodes = matched_nodes();
  const auto inside = [&](const Node& node) {
    if (nodes.size() <= 8) return std::find(nodes.begin(), nodes.end(), &node) != nodes.end();
    return std::binary_search(nodes.begin(), nodes.end(), &node, GraphOrder{});
  };
  const auto returned = [&](const Node* node) {
    for (const std::uint32_t output : program_.pattern().outputs) {
      if (!slots_[output].bound) continue;
      const Value& value = slots_[output].value;
      if (value.node == node || is_same_node(value, {const_cast<Node*>(node), nullptr})) return true;
    }
    return false;
  };
  for (Node* node : nodes) {
    if (returned(node)) continue;
    for (Node& user : node->users()) {
      if (inside(user) || (forms_ && forms_->is_of_form(user))) continue;
      if (!visit(node, &user)) return;
      break;
    }
  }
}

std::pair<Node*, Node*> Engine::escape() {
  std::pair<Node*, Node*> first{nullptr, nullptr};
  for_each_escape([&](Node* value, Node* user) {
    first = {value, user};
    return false;
  });
  return first;
}

std::vector<std::pair<Node*, Node*>> Engine::escapes() {
  std::vector<std::pair<Node*, Node*>> all;
  for_each_escape([&](Node* value, Node* user) {
    all.emplace_back(value, user);
    return true;
  });
  return all;
}

const FactLog& MatchBuilder::asked(const Match& match) {
  const std::vector<PatternNode>& pattern = match.pattern_->nodes;
  for (std::size_t i = 0; match.shapes_ && i < pattern.size(); ++i) {
    const Node* value = pattern[i].tensor ? match.values_[i].node_or_null() : nullptr;
    if (!value) continue;
    match.asked_.note({value, FactKind::dtype, TypeSet(pattern[i].tensor->dtypes)});
    if (pattern[i].tensor->sized) match.asked_.note({value, FactKind::sizes});
  }
  // Some copies are seen through because they keep the type.
  for (const Node* copy : match.shapes_ ? match.skipped() : std::vector<Node*>()) {
    copy->for_each_input([&](const Node& input) { match.asked_.note({copy, FactKind::same_dtype, {}, 0, &input}); });
  }
  return match.asked_;
}

void MatchBuilder::translate(Match& match, std::shared_ptr<const Reading> reading,
                             const std::function<Argument(Node&)>& translated) {
  match.read_ = match.values_;
  for (Argument& value : match.values_) value = map_nodes(value, translated);
  const auto source = [&](Node*& node) { node = &reading->source(*node); };
  for (Node*& node : match.nodes_) source(node);
  for (auto& [pattern, node] : match.interior_) source(node);
  std::sort(match.nodes_.begin(), match.nodes_.end(), GraphOrder{});
  match.nodes_.erase(std::unique(match.nodes_.begin(), match.nodes_.end()), match.nodes_.end());
  match.shapes_ = reading->program_shapes();
  match.reading_ = std::move(reading);
}

Match MatchBuilder::make(const CompiledPattern& program, Engine& engine) {
  Match match;
  match.pattern_ = program.shared_pattern();
  match.shapes_ = engine.shapes();
  match.values_.resize(program.size());
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (engine.is_bound(i)) match.values_[i] = engine.value(i).copy();
  }
  match.nodes_ = engine.matched_nodes();
  match.interior_ = engine.interior();
  if (program.has_alternatives()) {
    match.alternatives_.resize(program.size());
    for (std::uint32_t i = 0; i < program.size(); ++i) {
      if (engine.is_bound(i)) match.alternatives_[i] = engine.alternative(i);
    }
  }
  return match;
}

}  // namespace fx::internal
