// How the engine compares one pattern node with one value: literals, lists, and the arguments of calls.
#include <algorithm>
#include <cmath>

#include <fxgraph/matchers/engine.h>

#include <fxgraph/ops/python_symbols.h>

namespace fx::internal {

// ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

bool Engine::fail(std::uint32_t pattern, const Value& value, const Node* user, Mismatch why, std::uint32_t detail) {
  if (!observer_) [[likely]]
    return false;
  ++stats_.explained;
  return observer_->failed(pattern, value, user, why, detail);
}

bool Engine::same_value(std::uint32_t pattern, const Value& value) const {
  const Value& known = slots_[pattern].value;
  if (known.argument && value.argument && *known.argument == *value.argument) return true;
  return is_same_node(known, value) || known.copy() == value.copy();
}

/// Uses by forms are no uses.
std::size_t Engine::num_users(const Node& node) const {
  if (!forms_) return node.num_users();
  const Node& standing = forms_->standing(node);
  const auto users = standing.users();
  return static_cast<std::size_t>(
      std::count_if(users.begin(), users.end(), [&](const Node& user) { return !forms_->is_of_form(user); }));
}

bool Engine::passes_tests(std::uint32_t pattern, const Value& value, const Node* user) {
  const PatternNode& test = program_.node(pattern);
  if (value.node && (test.min_uses > 0 || test.max_uses != kManyUses)) {
    const std::size_t uses = num_users(*value.node);
    if ((uses < test.min_uses || uses > test.max_uses) && !fail(pattern, value, user, Mismatch::uses)) return false;
  }
  for (std::uint32_t i = 0; i < test.conditions.size(); ++i) {
    if (!test.conditions[i].test(value.copy()) && !fail(pattern, value, user, Mismatch::condition, i)) return false;
  }
  return !test.tensor || fits_tensor(pattern, value, user);
}

/// Compares at once what needs no search below it; leaves a goal for the rest.
bool Engine::enter(std::uint32_t pattern, const Value& value, const Node* user, const SchemaType* type) {
  const PatternNode& test = program_.node(pattern);
  ++stats_.nodes_visited;
  if (test.kind == PatternKind::one_of) {
    push_goal(pattern, value, user);
    return true;
  }
  if (test.kind == PatternKind::absent) {
    const bool none = value.missing() || (value.argument && value.argument->is_none());
    return none || fail(pattern, value, user, Mismatch::kind);
  }
  if (value.missing()) return fail(pattern, value, user, Mismatch::missing);
  if (slots_[pattern].bound) return same_value(pattern, value) || fail(pattern, value, user, Mismatch::other_value);
  switch (test.kind) {
    case PatternKind::any:
    case PatternKind::rest:  // its name alone, before `...` is reached
    case PatternKind::negation: return bind(pattern, value, user);
    case PatternKind::value:
      if (!value.node) return fail(pattern, value, user, Mismatch::not_a_node);
      return bind(pattern, value, user);
    case PatternKind::attribute:
      if (!value.node) return fail(pattern, value, user, Mismatch::not_a_node);
      if (!value.node->is(Op::get_attr) || !test.targets.contains(value.node->target())) {
        return fail(pattern, value, user, Mismatch::opcode_or_target);
      }
      return bind(pattern, value, user);
    case PatternKind::constant:
      if (!value.node) return fail(pattern, value, user, Mismatch::not_a_node);
      return is_constant(*value.node) ? bind(pattern, value, user) : fail(pattern, value, user, Mismatch::constant);
    case PatternKind::call:
      if (!value.node) return fail(pattern, value, user, Mismatch::not_a_node);
      if (!program_.accepts(pattern, *value.node) && !(forms_ && user && !forms_->forms_of(*value.node).empty()))
        return fail(pattern, value, user, Mismatch::opcode_or_target);
      push_goal(pattern, value, user);
      return true;
    case PatternKind::literal: return enter_literal(pattern, value, user, type);
    case PatternKind::hole: return enter_hole(pattern, value, user);
    case PatternKind::sequence:
      if (!test.unordered) return match_sequence(pattern, value, user);
      [[fallthrough]];
    case PatternKind::transparent:
    case PatternKind::dominated: push_goal(pattern, value, user); return true;
    case PatternKind::one_of:
    case PatternKind::absent: break;
  }
  return false;
}

namespace {

bool near(const Argument& a, const Argument& b, double tolerance) {
  const double x = a.as_float();
  const double y = b.as_float();
  // Nothing is near an infinity: the tolerance would be infinite too.
  if (!std::isfinite(x) || !std::isfinite(y)) return x == y;
  return std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
}

/// `stride=2` is `stride=[2, 2]` for an argument declared `int[2]`; `[]` has a meaning of its own.
bool equal_repeated(const Argument& one, const Argument& list, std::size_t size, bool ignore) {
  if (list.elements().size() != size) return false;
  for (const Argument& element : list.elements()) {
    if (!equal_literals(one, element, -1, ignore)) return false;
  }
  return true;
}

bool equal_as(const SchemaType* type, const Argument& pattern, const Argument& found, double tolerance, bool ignore) {
  if (type && type->fixed_size > 0 && pattern.is_sequence() != found.is_sequence()) {
    return pattern.is_sequence() ? equal_repeated(found, pattern, type->fixed_size, ignore)
                                 : equal_repeated(pattern, found, type->fixed_size, ignore);
  }
  return equal_literals(pattern, found, tolerance, ignore);
}

/// `x[(0, 1)]` is an element and `x[[0, 1]]` two rows; elsewhere a tuple and a list of equal elements are one.
bool is_kind_kept(ArgumentKind pattern, ArgumentKind found, const Node* user) {
  return pattern == found || !user || (user->target() != python::kGetItem && user->target() != python::kSetItem);
}

}  // namespace

bool equal_literals(const Argument& pattern, const Argument& found, double tolerance, bool ignore) {
  if (pattern.is_sequence() && found.is_sequence()) {
    const ArgumentSpan a = pattern.elements();
    const ArgumentSpan b = found.elements();
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!equal_literals(a[i], b[i], tolerance, ignore)) return false;
    }
    return true;
  }
  if (ignore && !pattern.is_sequence() && !found.is_sequence()) return !names_nodes(found);
  const bool numbers = (pattern.is_int() || pattern.is_float()) && (found.is_int() || found.is_float());
  return numbers && tolerance >= 0 ? near(pattern, found, tolerance) : pattern == found;
}

bool Engine::enter_literal(std::uint32_t pattern, const Value& value, const Node* user, const SchemaType* type) {
  const PatternNode& test = program_.node(pattern);
  // A definition writes 6 where another says 6.0.
  const double tolerance = forms_ && user && forms_->is_of_form(*user) ? std::max(test.tolerance, 0.0) : test.tolerance;
  const bool equal = !value.node && equal_as(type, test.literal, *value.argument, tolerance, options_.ignore_literals);
  if (!equal || (test.literal.is_sequence() && !is_kind_kept(test.literal.kind(), value.argument->kind(), user))) {
    return fail(pattern, value, user, Mismatch::literal);
  }
  return bind(pattern, value, user);
}

bool Engine::enter_hole(std::uint32_t pattern, const Value& value, const Node* user) {
  bool fits = !value.node && !names_nodes(*value.argument);
  switch (program_.node(pattern).hole) {
    case HoleKind::any: break;
    case HoleKind::integer: fits = fits && value.argument->is_int(); break;
    case HoleKind::floating: fits = fits && (value.argument->is_float() || value.argument->is_int()); break;
    case HoleKind::boolean: fits = fits && value.argument->is_bool(); break;
    case HoleKind::string: fits = fits && value.argument->is_string(); break;
  }
  return fits ? bind(pattern, value, user) : fail(pattern, value, user, Mismatch::kind);
}

bool Engine::fits_sequence(std::uint32_t pattern, const Value& value, const Node* user) {
  const PatternNode& test = program_.node(pattern);
  const bool plain = test.container == ArgumentKind::list || test.container == ArgumentKind::tuple;
  if (value.node || (plain ? !value.argument->is_sequence() : value.argument->kind() != test.container) ||
      !is_kind_kept(test.container, value.argument->kind(), user))
    return fail(pattern, value, user, Mismatch::kind);
  const std::size_t given = value.argument->elements().size();
  if (test.open ? given >= test.args.size() : given == test.args.size()) return true;
  return fail(pattern, value, user, Mismatch::arity, static_cast<std::uint32_t>(given));
}

bool Engine::match_sequence(std::uint32_t pattern, const Value& value, const Node* user) {
  if (!fits_sequence(pattern, value, user) || !bind(pattern, value, user)) return false;
  if (value.node || !value.argument->is_container()) return true;  // let pass by an observer
  const PatternNode& test = program_.node(pattern);
  const ArgumentSpan elements = value.argument->elements();
  const std::size_t shared = std::min(elements.size(), test.args.size());
  for (std::size_t i = shared; i-- > 0;) {
    if (!enter(test.args[i], {elements[i].node_or_null(), &elements[i]}, user)) return false;
  }
  if (test.tail == kNoPattern) return true;
  std::vector<Argument> left;
  for (std::size_t i = shared; i < elements.size(); ++i) left.push_back(elements[i]);
  return bind_tail(test.tail, std::move(left), user);
}

/// Binds the name of `...` to the list of what it stands for.
bool Engine::bind_tail(std::uint32_t tail, std::vector<Argument> elements, const Node* user) {
  made_.push_back(Argument::list(elements));
  const Value value{nullptr, &made_.back()};
  if (slots_[tail].bound) return same_value(tail, value) || fail(tail, value, user, Mismatch::other_value);
  return bind(tail, value, user);
}

// ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

Value value_of(const Argument* argument) { return argument ? Value{argument->node_or_null(), argument} : Value{}; }

/// GivenOperands may change places when every other argument has its default: x + 2 y is not y + 2 x.
bool others_are_default(const GivenOperands& given) {
  const OperandPlan& plan = given.plan;
  if (!plan.schema) return true;
  const Call call(*plan.schema, given.args, given.kwargs);
  for (std::size_t i = 2; i < plan.schema->arguments.size(); ++i) {
    const Argument* value = call.argument(i);
    const std::optional<Argument>& standard = plan.schema->arguments[i].default_value;
    if (!standard || !same_argument(plan.schema->arguments[i].type, *value, *standard)) return false;
  }
  return true;
}

}  // namespace

namespace {

/// What the call is given beyond its first `taken` arguments and the keywords that the pattern mentions. By position,
/// with the defaults that lie between; what cannot be, in a dict behind them.
std::vector<Argument> rest_of(std::size_t taken, const GivenOperands& given) {
  const OperatorSchema* schema = given.plan.schema;
  const auto is_mentioned = [&](Symbol name) {
    return std::ranges::any_of(given.plan.operands,
                               [&](const MentionedArgument& operand) { return operand.keyword == name; });
  };
  std::vector<Argument> rest;
  const std::size_t positions = schema ? std::max(schema->num_positional(), given.args.size()) : given.args.size();
  std::size_t end = taken;  // of what can be given by position
  for (std::vector<Argument> defaults; end < positions; ++end) {
    const bool declared = schema && end < schema->arguments.size();
    const Argument* value = end < given.args.size() ? &given.args[end]
                            : declared && !is_mentioned(schema->arguments[end].name)
                                ? given.kwargs.find(schema->arguments[end].name)
                                : nullptr;
    if (value) {
      rest.insert(rest.end(), defaults.begin(), defaults.end());
      defaults.clear();
      rest.push_back(*value);
      continue;
    }
    if (!declared || is_mentioned(schema->arguments[end].name) || !schema->arguments[end].default_value) break;
    defaults.push_back(*schema->arguments[end].default_value);
  }
  std::vector<Argument> keywords;
  for (const auto& [name, value] : given.kwargs) {
    const int at = schema ? schema->index_of(name) : -1;
    if (is_mentioned(name) || (at >= 0 && static_cast<std::size_t>(at) < end)) continue;
    keywords.push_back(Argument(name.view()));
    keywords.push_back(value);
  }
  if (!keywords.empty()) rest.push_back(Argument::dict(keywords));
  return rest;
}

}  // namespace

bool Engine::match_call(std::uint32_t pattern, Node& node, const Node* user) {
  const Value value{&node, nullptr};
  if (!program_.accepts(pattern, node)) return fail(pattern, value, user, Mismatch::opcode_or_target);
  if (!bind(pattern, value, user)) return false;
  if (program_.node(pattern).bare) return true;
  const GivenOperands given = program_.operands(pattern, node);
  if (!given.plan.possible) return fail(pattern, value, user, Mismatch::keyword);
  if (given.plan.commutes && others_are_default(given)) push_choice(Choice::Kind::swap, pattern, value, user);
  return match_operands(pattern, node, given, false);
}

bool Engine::match_operands(std::uint32_t pattern, Node& node, const GivenOperands& given, bool swapped) {
  const OperandPlan& plan = given.plan;
  const ArgumentSpan args = given.args;
  const bool plain = !swapped && args.size() <= plan.plain && given.kwargs.empty();
  if (!plain && !match_unmentioned(pattern, node, given, swapped)) return false;
  // Backwards, so that the first operand's goal is reached first.
  for (std::size_t i = plan.operands.size(); i-- > 0;) {
    const MentionedArgument& operand = plan.operands[i];
    auto position = static_cast<std::size_t>(operand.position);  // by keyword only: beyond all
    if (swapped && position < 2) position = 1 - position;
    const Argument* argument = nullptr;
    if (position < args.size()) {
      argument = &args[position];
    } else if (plan.schema) {
      if (position < plan.schema->arguments.size())
        argument = Call(*plan.schema, args, given.kwargs).argument(position);
    } else {
      argument = given.kwargs.find(operand.keyword);
    }
    if (!enter(operand.pattern, value_of(argument), &node, operand.type)) return false;
  }
  const PatternNode& test = program_.node(pattern);
  if (test.tail == kNoPattern) [[likely]]
    return true;
  return bind_tail(test.tail, rest_of(test.args.size(), given), &node);
}

/// Arguments that the pattern does not mention must have their defaults, and the call none that the schema does not
/// know.
bool Engine::match_unmentioned(std::uint32_t pattern, Node& node, const GivenOperands& operands, bool swapped) {
  const OperandPlan& plan = operands.plan;
  if (!plan.schema) return match_unschemed(pattern, node, operands);
  const OperatorSchema& schema = *plan.schema;
  const std::size_t given = operands.args.size();
  const Value value{&node, nullptr};
  const bool open = program_.node(pattern).open && !swapped;
  if (given > schema.num_positional() && !(schema.varargs && (open || given == plan.operands.size()))) {
    return fail(pattern, value, &node, Mismatch::arity, static_cast<std::uint32_t>(given));
  }
  const KwargSpan kwargs = operands.kwargs;
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    if (schema.index_of(kwargs.name(i)) < 0)
      return fail(pattern, value, &node, Mismatch::keyword, static_cast<std::uint32_t>(i));
  }
  for (const std::uint16_t position : plan.unmentioned) {
    const Argument* argument = position < given ? &operands.args[position]
                               : kwargs.empty() ? nullptr
                                                : kwargs.find(schema.arguments[position].name);
    if (!argument) {
      if (!schema.arguments[position].default_value)
        return fail(pattern, value, &node, Mismatch::not_default, position);
      continue;
    }
    const std::optional<Argument>& standard = schema.arguments[position].default_value;
    const SchemaType& type = schema.arguments[position].type;
    const double tolerance = type.base == SchemaType::Base::scalar ? 0 : -1;  // Python's default of 1.0 is 1
    if (!standard || !equal_as(&type, *standard, *argument, tolerance, options_.ignore_literals)) {
      if (!fail(pattern, value, &node, Mismatch::not_default, position)) return false;
    }
  }
  return true;
}

/// Without a schema a call has the arguments that it is written with.
bool Engine::match_unschemed(std::uint32_t pattern, Node& node, const GivenOperands& operands) {
  const PatternNode& test = program_.node(pattern);
  const Value value{&node, nullptr};
  const std::size_t given = operands.args.size();
  if (given > test.args.size() && !test.open)
    return fail(pattern, value, &node, Mismatch::arity, static_cast<std::uint32_t>(given));
  const KwargSpan kwargs = operands.kwargs;
  if (test.open) return true;
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    const bool wanted = std::ranges::any_of(
        operands.plan.operands, [&](const MentionedArgument& operand) { return operand.keyword == kwargs.name(i); });
    if (!wanted) return fail(pattern, value, &node, Mismatch::keyword, static_cast<std::uint32_t>(i));
  }
  return true;
}

}  // namespace fx::internal
