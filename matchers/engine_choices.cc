// Choices beyond alternatives and operand order: how far to see through copies or to follow a path, which element of an
// unordered list is which; and the searches for what must not match.
#include <algorithm>

#include <fxgraph/matchers/engine.h>

namespace fx::internal {

namespace {

bool holds_enough(const Value& value, const PatternNode& list) {
  return !value.node && value.argument->is_container() && value.argument->elements().size() >= list.args.size();
}

}  // namespace

/// Binds what has several ways to fit, and takes the first.
bool Engine::begin(Choice::Kind kind, const Goal& goal) {
  const std::uint32_t pattern = goal.pattern;
  if (slots_[pattern].bound)
    return same_value(pattern, goal.value) || fail(pattern, goal.value, goal.user, Mismatch::other_value);
  if (kind == Choice::Kind::pick && !fits_sequence(pattern, goal.value, goal.user)) return false;
  if (kind == Choice::Kind::path && !goal.value.node) return fail(pattern, goal.value, goal.user, Mismatch::not_a_node);
  if (!bind(pattern, goal.value, goal.user)) return false;
  if (kind == Choice::Kind::pick && !holds_enough(goal.value, program_.node(pattern))) return true;  // let pass
  Choice& choice = push_choice(kind, pattern, goal.value, goal.user);
  if (kind != Choice::Kind::path) return resume(choice);
  choice.extent = num_walks_++;
  if (walks_.size() < num_walks_) walks_.emplace_back();
  walks_[choice.extent].start(*goal.value.node);
  return resume(choice);
}

/// The value itself first, then what it forwards.
bool Engine::see_through(Choice& choice) {
  const std::uint32_t pattern = choice.pattern;
  if (choice.tried++ > 0) {
    interior_.emplace_back(pattern, choice.value.node);
    choice.interior = static_cast<std::uint32_t>(interior_.size());
    choice.value = {program_.forwarded_operand(*choice.value.node), nullptr};
    choice.user = interior_.back().second;
  }
  const Value value = choice.value;
  const Node* user = choice.user;
  if (!value.node || !program_.forwarded_operand(*value.node)) choices_.pop_back();
  return enter(program_.node(pattern).args[0], value, user);
}

/// The value itself first, then one dominator after the other.
bool Engine::follow_path(Choice& choice) {
  const std::uint32_t pattern = choice.pattern;
  const PatternNode& test = program_.node(pattern);
  DominatorWalk& walk = walks_[choice.extent];
  const Node* user = choice.user;
  Node* base = choice.value.node;
  if (choice.tried++ > 0) {
    const std::size_t known = walk.passed().size();
    const Node* refused = nullptr;
    base = walk.next([&](const Node& node) {
      if (steps_left_ > 0) --steps_left_;
      const bool on_path = steps_left_ > 0 && program_.may_be(test.args[1], node);
      if (!on_path) refused = &node;
      return on_path;
    });
    for (std::size_t i = known; i < walk.passed().size(); ++i) interior_.emplace_back(pattern, walk.passed()[i]);
    choice.interior = static_cast<std::uint32_t>(interior_.size());
    if (!base) {
      num_walks_ = choice.extent;
      choices_.pop_back();
      if (!refused) return false;
      return fail(pattern, {const_cast<Node*>(refused), nullptr}, user, Mismatch::path);
    }
    user = walk.passed().back();
  }
  return enter(test.args[0], {base, nullptr}, user);
}

/// Tries the next free element of the list for the pattern's element, and so on for the elements after it.
bool Engine::pick(std::uint32_t at) {
  const std::uint32_t pattern = choices_[at].pattern;
  const Value value = choices_[at].value;
  const Node* user = choices_[at].user;
  const PatternNode& test = program_.node(pattern);
  const ArgumentSpan elements = value.argument->elements();
  for (std::uint32_t element = choices_[at].extent;; ++element) {
    Choice& choice = choices_.back();
    picks_.resize(choice.picks);
    const auto taken = picks_.end() - element;
    while (choice.tried < elements.size() && std::find(taken, picks_.end(), choice.tried) != picks_.end())
      ++choice.tried;
    if (choice.tried == elements.size()) {
      choices_.pop_back();
      return false;
    }
    const std::uint32_t picked = choice.tried++;
    const Argument& found = elements[picked];
    if (!enter(test.args[element], {found.node_or_null(), &found}, user)) return false;
    picks_.push_back(picked);
    if (element + 1 == test.args.size()) break;
    push_choice(Choice::Kind::pick, pattern, value, user).extent = element + 1;
  }
  if (test.tail == kNoPattern) return true;
  std::vector<Argument> left;
  const auto taken = picks_.end() - static_cast<std::ptrdiff_t>(test.args.size());
  for (std::uint32_t i = 0; i < elements.size(); ++i) {
    if (std::find(taken, picks_.end(), i) == picks_.end()) left.push_back(elements[i]);
  }
  return bind_tail(test.tail, std::move(left), user);
}

/// A search of its own for `pattern` at `value`, above what is bound; leaves no trace.
bool Engine::fits_below(std::uint32_t pattern, const Value& value) {
  const std::uint32_t floor = floor_;
  const std::uint32_t base = base_;
  const std::uint32_t goal = goal_;
  const std::uint32_t step = step_;
  const std::uint32_t bound = bound_;
  const std::size_t num_goals = goals_.size();
  const std::size_t num_interior = interior_.size();
  const std::uint32_t num_walks = num_walks_;
  FailureObserver* const observer = observer_;
  floor_ = static_cast<std::uint32_t>(choices_.size());
  base_ = bound_;
  goal_ = kNoGoal;
  step_ = static_cast<std::uint32_t>(plan_->steps.size());
  observer_ = nullptr;
  const bool fits = (enter(pattern, value, nullptr) || backtrack()) && run();
  undo_to(bound);
  choices_.erase(choices_.begin() + floor_, choices_.end());
  goals_.resize(num_goals);
  interior_.resize(num_interior);
  num_walks_ = num_walks;
  floor_ = floor;
  base_ = base;
  goal_ = goal;
  step_ = step;
  observer_ = observer;
  return fits;
}

/// What the pattern says must not match does not, with everything else bound.
bool Engine::negations_hold() {
  const std::uint32_t end = bound_;
  for (std::uint32_t i = base_; i < end; ++i) {
    const std::uint32_t pattern = trail_[i];
    if (program_.node(pattern).kind != PatternKind::negation) continue;
    const Value value = slots_[pattern].value;
    if (fits_below(program_.node(pattern).args[0], value) && !fail(pattern, value, nullptr, Mismatch::negation))
      return false;
  }
  return true;
}

}  // namespace fx::internal
