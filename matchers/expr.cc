#include <fxgraph/matchers/expr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_map>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/support/error.h>

namespace fx::match {

using internal::ExprNode;
using internal::HoleKind;
using internal::PatternAccess;
using internal::PatternKind;

namespace {

std::uint64_t new_identity() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

ExprNode make(PatternKind kind, std::string_view name = {}) {
  ExprNode node;
  node.kind = kind;
  node.identity = new_identity();
  node.name = name;
  return node;
}

Expr finish(ExprNode node) { return PatternAccess::make(std::move(node)); }

Expr hole(HoleKind kind, std::string_view name) {
  ExprNode node = make(PatternKind::hole, name);
  node.hole = kind;
  return finish(std::move(node));
}

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

/// Sets the arguments, the last of which may be rest().
void set_args(ExprNode& node, std::vector<Expr> args) {
  node.open = !args.empty() && PatternAccess::of(args.back()).kind == PatternKind::rest;
  node.tail.clear();
  if (node.open) {
    if (!PatternAccess::of(args.back()).name.empty()) node.tail.push_back(args.back());
    args.pop_back();
  }
  for (const Expr& arg : args) {
    if (PatternAccess::of(arg).kind == PatternKind::rest)
      refuse("rest() stands for the last arguments: nothing may follow it");
  }
  node.args = std::move(args);
}

/// A comparison by how it is written; `sign` is that of left minus right, 2 for NaN.
struct Comparison {
  std::string_view text;
  bool (*holds)(int sign);
};

constexpr std::array kComparisons = {
    Comparison{"<=", [](int sign) { return sign == -1 || sign == 0; }},
    Comparison{">=", [](int sign) { return sign == 1 || sign == 0; }},
    Comparison{"==", [](int sign) { return sign == 0; }},
    Comparison{"!=", [](int sign) { return sign != 0; }},
    Comparison{"<", [](int sign) { return sign == -1; }},
    Comparison{">", [](int sign) { return sign == 1; }},
};

template <typename T>
int sign_of(T a, T b) {
  return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

int compare(const Argument& a, const Argument& b) {
  if (a.is_int() && b.is_int()) return sign_of(a.as_int(), b.as_int());
  return sign_of(a.as_float(), b.as_float());
}

bool is_real(const Argument& value) { return value.is_int() || value.is_float(); }

/// A copy in which everything but named parts and blanks stands for values of its own.
Expr fresh_copy(const Expr& expr, std::unordered_map<std::uint64_t, std::uint64_t>& fresh) {
  ExprNode node = PatternAccess::of(expr);
  if (node.name.empty()) {
    std::uint64_t& identity = fresh[node.identity];
    if (identity == 0) identity = new_identity();
    node.identity = identity;
  }
  for (Expr& arg : node.args) arg = fresh_copy(arg, fresh);
  for (auto& [name, arg] : node.kwargs) arg = fresh_copy(arg, fresh);
  return finish(std::move(node));
}

}  // namespace

Expr::Expr(Wildcard) {
  ExprNode node = make(PatternKind::any);
  node.blank = true;
  *this = finish(std::move(node));
}

Expr::Expr(const Argument& value) {
  if (names_nodes(value)) refuse("a literal of a pattern names no nodes; write list({…}) for a list of patterns");
  ExprNode node = make(PatternKind::literal);
  node.literal = value;
  *this = finish(std::move(node));
}

Expr Expr::name(std::string_view name) const {
  ExprNode node = *node_;
  node.name = name;
  node.blank = false;
  return finish(std::move(node));
}

Expr Expr::uses(std::uint32_t low, std::uint32_t high) const {
  ExprNode node = *node_;
  node.min_uses = low;
  node.max_uses = high;
  return finish(std::move(node));
}

Expr Expr::where(std::function<bool(const Argument&)> test, std::string_view what) const {
  ExprNode node = *node_;
  node.conditions.push_back({std::move(test), std::string(what)});
  return finish(std::move(node));
}

Expr Expr::where(std::string_view comparison, const Argument& bound) const {
  const auto at = std::find_if(kComparisons.begin(), kComparisons.end(),
                               [&](const Comparison& known) { return known.text == comparison; });
  if (at == kComparisons.end())
    refuse("'" + std::string(comparison) + "' is no comparison; write <, <=, >, >=, == or !=");
  if (!is_real(bound)) refuse("a literal is compared with an int or a float, not with " + to_string(bound));
  ExprNode node = *node_;
  const std::string text = std::string(comparison) + " " + to_string(bound);
  node.conditions.push_back(
      {[bound, holds = at->holds](const Argument& value) { return is_real(value) && holds(compare(value, bound)); },
       "a number " + text, text});
  return finish(std::move(node));
}

Expr Expr::is(std::string_view type) const {
  ExprNode node = *node_;
  internal::parse_tensor_test(type, node);
  return finish(std::move(node));
}

Expr Expr::of_type(TargetSet types) const {
  if (node_->op != Op::call_module) refuse("of_type() belongs to a call of a module");
  ExprNode node = *node_;
  node.types = std::move(types);
  return finish(std::move(node));
}

Expr Expr::kwarg(std::string_view name, Expr value) const {
  if (node_->kind != PatternKind::call) refuse("kwarg(\"" + std::string(name) + "\") belongs to a call");
  ExprNode node = *node_;
  node.bare = false;
  node.kwargs.emplace_back(Symbol(name), std::move(value));
  return finish(std::move(node));
}

Expr Expr::within(double tolerance) const {
  if (!node_->literal.is_number()) refuse("within() belongs to a literal number");
  ExprNode node = *node_;
  node.tolerance = tolerance;
  return finish(std::move(node));
}

Expr Expr::apply(const std::vector<Expr>& inputs) const {
  ExprNode node = *node_;
  node.identity = new_identity();
  if (node.kind == PatternKind::one_of) {
    for (Expr& alternative : node.args) {
      if (PatternAccess::of(alternative).kind == PatternKind::absent) {
        if (inputs.size() != 1) refuse("an optional operator is applied to the one value that passes through it");
        alternative = inputs[0];
      } else {
        alternative = alternative.apply(inputs);
      }
    }
    return finish(std::move(node));
  }
  if (node.kind != PatternKind::call) refuse("only operators and alternatives of operators can be applied to inputs");
  if (node.bare) {
    set_args(node, inputs);
    node.bare = false;
    return finish(std::move(node));
  }
  std::size_t next = 0;
  for (Expr& arg : node.args) {
    if (next < inputs.size() && PatternAccess::of(arg).blank) arg = inputs[next++];
  }
  if (next < inputs.size()) refuse("the operator has fewer `_` to fill than it was given inputs");
  return finish(std::move(node));
}

Expr any(std::string_view name) { return finish(make(PatternKind::any, name)); }
Expr value(std::string_view name) { return finish(make(PatternKind::value, name)); }
Expr constant(std::string_view name) { return finish(make(PatternKind::constant, name)); }

Expr parameter(std::string_view name, TargetSet path) {
  ExprNode node = make(PatternKind::attribute, name);
  node.targets = std::move(path);
  return finish(std::move(node));
}

Expr call(Op op, TargetSet targets, std::vector<Expr> args) {
  ExprNode node = make(PatternKind::call);
  node.op = op;
  node.targets = std::move(targets);
  node.bare = args.empty();
  set_args(node, std::move(args));
  return finish(std::move(node));
}

Expr commutative_call(TargetSet targets, std::vector<Expr> args) {
  if (args.size() < 2) refuse("a commutative operator is written with its two operands");
  ExprNode node = PatternAccess::of(call(Op::call_function, std::move(targets), std::move(args)));
  node.commutative = true;
  return finish(std::move(node));
}

Expr rest(std::string_view name) { return finish(make(PatternKind::rest, name)); }

Expr lit(const Argument& value) { return Expr(value); }
Expr near(double value, double tolerance) { return Expr(value).within(tolerance); }
Expr lit_any(std::string_view name) { return hole(HoleKind::any, name); }
Expr lit_int(std::string_view name) { return hole(HoleKind::integer, name); }
Expr lit_float(std::string_view name) { return hole(HoleKind::floating, name); }
Expr lit_bool(std::string_view name) { return hole(HoleKind::boolean, name); }
Expr lit_string(std::string_view name) { return hole(HoleKind::string, name); }

Expr list(std::vector<Expr> elements) {
  ExprNode node = make(PatternKind::sequence);
  set_args(node, std::move(elements));
  return finish(std::move(node));
}

Expr unordered(std::vector<Expr> elements) {
  ExprNode node = PatternAccess::of(list(std::move(elements)));
  node.unordered = true;
  return finish(std::move(node));
}

Expr any_of(std::vector<Expr> alternatives) {
  if (alternatives.empty()) refuse("one_of needs an alternative");
  if (alternatives.size() > 255) refuse("one_of takes at most 255 alternatives");
  ExprNode node = make(PatternKind::one_of);
  node.args = std::move(alternatives);
  return finish(std::move(node));
}

Expr maybe(Expr expr) { return any_of({std::move(expr), finish(make(PatternKind::absent))}); }

Expr not_(Expr expr) {
  ExprNode node = make(PatternKind::negation);
  node.args = {std::move(expr)};
  return finish(std::move(node));
}

Expr transparent(Expr expr) {
  ExprNode node = make(PatternKind::transparent);
  node.args = {std::move(expr)};
  return finish(std::move(node));
}

Expr repeat(Expr step, std::uint32_t low, std::uint32_t high, Expr from) {
  if (!PatternAccess::of(step).name.empty())
    refuse("the step of a repetition stands for several values, it cannot have a name");
  if (high < 1 || low > high || high > 64) refuse("a step is repeated `low` to `high` times, at most 64");
  Expr value = from;
  for (std::uint32_t i = high; i-- > 0;) {
    std::unordered_map<std::uint64_t, std::uint64_t> fresh;
    Expr next = fresh_copy(step, fresh)(value);
    value = i < low ? next : any_of({next, from});
  }
  return value;
}

Expr dominates(Expr parent, Expr path) {
  ExprNode node = make(PatternKind::dominated);
  node.args = {std::move(parent), std::move(path)};
  return finish(std::move(node));
}

}  // namespace fx::match
