#include "matchers/expr.h"

#include <atomic>

#include "matchers/expr_node.h"
#include "support/error.h"

namespace fx::match {

using internal::ExprNode;
using internal::HoleKind;
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

Expr finish(ExprNode node) { return Expr(std::make_shared<const ExprNode>(std::move(node))); }

Expr hole(HoleKind kind, std::string_view name) {
  ExprNode node = make(PatternKind::hole, name);
  node.hole = kind;
  return finish(std::move(node));
}

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

/// Takes a trailing rest() off `args`; returns whether there was one.
bool take_rest(std::vector<Expr>& args) {
  bool open = false;
  if (!args.empty() && args.back().node().kind == PatternKind::rest) {
    args.pop_back();
    open = true;
  }
  for (const Expr& arg : args) {
    if (arg.node().kind == PatternKind::rest) refuse("rest() stands for the last arguments: nothing may follow it");
  }
  return open;
}

bool names_nodes(const Argument& value) {
  bool found = false;
  for_each_node(value, [&](const Node&) { found = true; });
  return found;
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

Expr Expr::kwarg(std::string_view name, Expr value) const {
  if (node_->kind != PatternKind::call) refuse("kwarg(\"" + std::string(name) + "\") belongs to a call");
  ExprNode node = *node_;
  node.bare = false;
  node.kwargs.emplace_back(Symbol(name), std::move(value));
  return finish(std::move(node));
}

Expr Expr::within(double tolerance) const {
  if (node_->kind != PatternKind::literal || !node_->literal.is_number())
    refuse("within() belongs to a literal number");
  ExprNode node = *node_;
  node.tolerance = tolerance;
  return finish(std::move(node));
}

Expr Expr::apply(const std::vector<Expr>& inputs) const {
  ExprNode node = *node_;
  node.identity = new_identity();
  if (node.kind == PatternKind::one_of) {
    for (Expr& alternative : node.args) {
      if (alternative.node().kind == PatternKind::absent) {
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
    node.args = inputs;
    node.open = take_rest(node.args);
    node.bare = false;
    return finish(std::move(node));
  }
  std::size_t next = 0;
  for (Expr& arg : node.args) {
    if (next < inputs.size() && arg.node().blank) arg = inputs[next++];
  }
  if (next < inputs.size()) refuse("the operator has fewer `_` to fill than it was given inputs");
  return finish(std::move(node));
}

Expr any(std::string_view name) { return finish(make(PatternKind::any, name)); }
Expr value(std::string_view name) { return finish(make(PatternKind::value, name)); }

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
  node.open = take_rest(args);
  node.args = std::move(args);
  return finish(std::move(node));
}

Expr commutative_call(TargetSet targets, std::vector<Expr> args) {
  if (args.size() < 2) refuse("a commutative operator is written with its two operands");
  ExprNode node = call(Op::call_function, std::move(targets), std::move(args)).node();
  node.commutative = true;
  return finish(std::move(node));
}

Expr rest() { return finish(make(PatternKind::rest)); }

Expr lit(const Argument& value) { return Expr(value); }
Expr near(double value, double tolerance) { return Expr(value).within(tolerance); }
Expr lit_any(std::string_view name) { return hole(HoleKind::any, name); }
Expr lit_int(std::string_view name) { return hole(HoleKind::integer, name); }
Expr lit_float(std::string_view name) { return hole(HoleKind::floating, name); }
Expr lit_bool(std::string_view name) { return hole(HoleKind::boolean, name); }
Expr lit_string(std::string_view name) { return hole(HoleKind::string, name); }

Expr list(std::vector<Expr> elements) {
  ExprNode node = make(PatternKind::sequence);
  node.open = take_rest(elements);
  node.args = std::move(elements);
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

}  // namespace fx::match
