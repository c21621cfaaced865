// Combinators: patterns written in C++ the way the expression they match is written.
//
//   using namespace fx::match;
//   auto conv = op("aten::conv2d", any("x"), parameter("w"), maybe(parameter("b")), rest()).name("conv");
//   auto act  = one_of(op("aten::relu"), op(re("aten::hard(swish|sigmoid)")), op("aten::clamp", _, 0.0, 6.0));
//   fx::Pattern p = act(commutative("aten::add.Tensor", conv.used_once(), any("residual")));
//
// Rules of the language:
//   - Arguments are compared after binding to the operator's schema: positional, keyword and default spellings of a
//     call are one call. Arguments that a pattern does not mention must have their defaults; `rest()` in the last
//     place leaves them open. An operator with no arguments at all, `op("aten::relu")`, accepts any.
//   - The same name, or the same Expr object, means the same value wherever it stands. Different names may bind
//     one value.
//   - A literal matches its own kind and value: 1 is not 1.0. `near` gives a tolerance.
//
// Expr is an immutable value; copies share. The modifiers return a changed copy that stands for the same value.
// Thread-safety: immutable; may be shared between threads.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/node.h>
#include <fxgraph/matchers/targets.h>

namespace fx::internal {
struct ExprNode;
struct PatternAccess;
}  // namespace fx::internal

namespace fx::match {

/// `_`: a wildcard of its own at each place where it stands.
struct Wildcard {};
inline constexpr Wildcard _{};  ///< the wildcard itself: `op("aten::add.Tensor", _, _)`

/// A pattern of one value, made by the functions below and changed by its modifiers; see the top of this file.
class Expr {
 public:
  /// Any argument, as any() without a name.
  Expr(Wildcard);
  /// This number and kind of number, as lit().
  template <typename T>
  requires std::is_arithmetic_v<T> Expr(T literal) : Expr(Argument(literal)) {}
  /// The literal `value`; it names no nodes.
  explicit Expr(const Argument& value);

  /// Names the value, for Match::operator[] and for the replacement.
  Expr name(std::string_view name) const;
  /// The value must have exactly one user.
  Expr used_once() const { return uses(1, 1); }
  /// The value must have at least `low` and at most `high` users.
  Expr uses(std::uint32_t low, std::uint32_t high) const;
  /// `test` must accept the value; `what` says in words what it wants, for explanations ("a float tensor").
  Expr where(std::function<bool(const Argument&)> test, std::string_view what) const;
  /// A literal number must compare so with `bound`: `<`, `<=`, `>`, `>=`, `==`, `!=`.
  Expr where(std::string_view comparison, const Argument& bound) const;
  /// The value must be such a tensor: `f32[N, C, *, *]`, `floating`, `tensor[B, ...] on cuda`. A name stands for one
  /// size wherever it is mentioned, and is captured as an int. Said once of a value. Needs FindOptions::shapes.
  Expr is(std::string_view type) const;
  /// The module that is called must be of one of these types: `Conv2d`, `torch.nn.Conv2d`, an expression. Needs
  /// FindOptions::modules.
  Expr of_type(TargetSet types) const;
  /// Adds a keyword argument to a call.
  Expr kwarg(std::string_view name, Expr value) const;
  /// A literal number accepts what differs by at most `tolerance` relative to the larger magnitude, of either number
  /// kind.
  Expr within(double tolerance) const;

  /// Applies an operator to its inputs: they fill the `_` among its arguments, left to right, or are the arguments of
  /// an operator written without any. Alternatives are each applied; `maybe(f)(x)` is `f(x)` or `x` itself.
  template <typename... Inputs>
  Expr operator()(Inputs... inputs) const {
    return apply({Expr(inputs)...});
  }

 private:
  friend struct internal::PatternAccess;
  explicit Expr(std::shared_ptr<const internal::ExprNode> node) : node_(std::move(node)) {}
  Expr apply(const std::vector<Expr>& inputs) const;
  std::shared_ptr<const internal::ExprNode> node_;
};

/// A regular expression (RE2) on the whole target.
inline TargetSet re(std::string_view expression) { return TargetSet::matching(expression); }

/// The calls that are written with this name, whatever else means the same.
inline TargetSet spelt(std::string_view name) { return TargetSet::spelt(name); }

/// Any argument: a node, a number, a list, None.
Expr any(std::string_view name = {});
/// Any node.
Expr value(std::string_view name = {});
/// A value computed from get_attrs and literals alone, by calls without effects.
Expr constant(std::string_view name = {});
/// A get_attr: a parameter, buffer or constant; `path` restricts where it lives.
Expr parameter(std::string_view name = {}, TargetSet path = {});

/// A call of an operator.
Expr call(Op op, TargetSet targets, std::vector<Expr> args);
/// A call of an operator or function; without arguments, of any arguments.
template <typename... Args>
Expr op(TargetSet targets, Args... args) {
  return call(Op::call_function, std::move(targets), {Expr(args)...});
}
/// A call of a method: `args[0]` is the object.
template <typename... Args>
Expr method(TargetSet names, Args... args) {
  return call(Op::call_method, std::move(names), {Expr(args)...});
}
/// A call of a submodule by its path.
template <typename... Args>
Expr module(TargetSet paths, Args... args) {
  return call(Op::call_module, std::move(paths), {Expr(args)...});
}
/// A call of a submodule by its type.
template <typename... Args>
Expr module_of(TargetSet types, Args... args) {
  return module({}, args...).of_type(std::move(types));
}
/// An operator whose first two operands may stand in either order.
Expr commutative_call(TargetSet targets, std::vector<Expr> args);
/// The same with the arguments one after the other.
template <typename... Args>
Expr commutative(TargetSet targets, Args... args) {
  return commutative_call(std::move(targets), {Expr(args)...});
}
/// Other arguments, whatever they are. Last among a call's arguments or a list's elements. With a name, their list.
Expr rest(std::string_view name = {});

/// Exactly this literal.
Expr lit(const Argument& value);
/// This number up to `tolerance`, relative to the larger magnitude.
Expr near(double value, double tolerance = 1e-6);
/// Any literal: an argument that names no node. None is one, too.
Expr lit_any(std::string_view name = {});
/// Any int; a bool is none.
Expr lit_int(std::string_view name = {});
/// A float; an int is accepted where a float is meant.
Expr lit_float(std::string_view name = {});
/// Any literal of that kind.
/// @{
Expr lit_bool(std::string_view name = {});
Expr lit_string(std::string_view name = {});
/// @}

/// A list or tuple with these elements.
Expr list(std::vector<Expr> elements);
/// A list or tuple with these elements in any order; with rest() some of its elements are these.
Expr unordered(std::vector<Expr> elements);

/// The first of the alternatives that fits; Match::alternative says which.
Expr any_of(std::vector<Expr> alternatives);
/// The same with the alternatives one after the other: `one_of(a, b).name("kind")`.
template <typename... Alternatives>
Expr one_of(Alternatives... alternatives) {
  return any_of({Expr(alternatives)...});
}
/// As an argument: `expr`, or None or nothing. Applied, `maybe(f)(x)`: `f(x)` or `x`.
Expr maybe(Expr expr);
/// An argument that `expr` does not match, whatever else is bound. Names of `expr` alone stay unbound.
Expr not_(Expr expr);
/// What `expr` matches, or a call that hands that on as it is; see Pattern::seeing_through.
Expr transparent(Expr expr);
/// `step` applied `low` to `high` times to `from`: what is not named in it may differ from step to step.
Expr repeat(Expr step, std::uint32_t low, std::uint32_t high, Expr from);
/// A value that `parent` matches, or one computed from it alone: every way up from it leads to that one value, through
/// calls that `path` accepts. Attributes on the way do not count. `path` is an operator without arguments, or
/// alternatives of those.
Expr dominates(Expr parent, Expr path);

}  // namespace fx::match
