#include <fxgraph/contract/assertions.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

/// The rest of a term of a sum that is subtracted: `2*x` of `-2*x`.
std::optional<SizeExpr> subtracted(const SizeExpr& term) {
  if (term.is_integer() && term.value() < 0 && term.value() != INT64_MIN) return SizeExpr(-term.value());
  if (!term.is_call("Mul") || term.operands().size() < 2 || !term.operands()[0].is_integer()) return std::nullopt;
  const std::int64_t factor = term.operands()[0].value();
  if (factor >= 0 || factor == INT64_MIN) return std::nullopt;
  std::vector<SizeExpr> rest(term.operands().begin() + 1, term.operands().end());
  if (factor != -1) rest.insert(rest.begin(), SizeExpr(-factor));
  return rest.size() == 1 ? rest[0] : SizeExpr::call("Mul", std::move(rest));
}

}  // namespace

bool AssertionWriter::can_write(const SizeExpr& expression) {
  if (expression.is_integer() || expression.is_symbol()) return true;
  return !call_that_is(expression.name()).empty() && !expression.operands().empty() && !expression.is_real() &&
         std::ranges::all_of(expression.operands(), can_write);
}

Argument AssertionWriter::call(Symbol target, const Argument& a, const Argument& b) const {
  return Argument(make_(target, {a, b}));
}

/// What is subtracted comes after what it is subtracted from.
Argument AssertionWriter::sum(const SizeExpr& expression, const NumberOf& number_of) const {
  std::vector<SizeExpr> terms = expression.operands();
  std::ranges::stable_partition(terms, [](const SizeExpr& term) { return !subtracted(term); });
  Argument total = made(terms[0], number_of);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const std::optional<SizeExpr> less = subtracted(terms[i]);
    total = call(less ? python::kSub : python::kAdd, total, made(less ? *less : terms[i], number_of));
  }
  return total;
}

Argument AssertionWriter::made(const SizeExpr& expression, const NumberOf& number_of) const {
  if (expression.is_integer()) return expression.value();
  if (expression.is_symbol()) return number_of(expression.name());
  if (expression.is_call("Add")) return sum(expression, number_of);
  const Symbol target = call_that_is(expression.name());
  Argument first = made(expression.operands()[0], number_of);
  if (expression.operands().size() == 1) return Argument(make_(target, {first}));
  for (std::size_t i = 1; i < expression.operands().size(); ++i)
    first = call(target, first, made(expression.operands()[i], number_of));
  return first;
}

Argument AssertionWriter::number(const SizeExpr& expression, const NumberOf& number_of) const {
  if (!can_write(expression))
    throw Error(ErrorKind::unsupported, expression.str() + " is no arithmetic of whole numbers");
  return made(expression, number_of);
}

Argument AssertionWriter::holds(const SizeCondition& condition, const NumberOf& number_of) const {
  const Argument left = number(condition.left, number_of);
  if (condition.relation == SizeRelation::holds) return left;
  const Argument right = number(condition.right, number_of);
  if (condition.relation != SizeRelation::multiple) return holds(condition.relation, left, right);
  return holds(SizeRelation::equal, call(python::kMod, left, right), 0);
}

Argument AssertionWriter::holds(SizeRelation relation, const Argument& left, const Argument& right) const {
  const bool is_equality = relation == SizeRelation::equal;
  if (is_equality && right == Argument(true)) return left;
  if (right.is_float() && std::isnan(right.as_float()))
    return call(call_that_is(function_of(is_equality ? SizeRelation::unequal : SizeRelation::equal)), left, left);
  if (right.is_none()) return call(is_equality ? python::kIs : python::kIsNot, left, right);
  return call(call_that_is(function_of(relation)), left, right);
}

void AssertionWriter::add(const Argument& holds, std::string_view message) const {
  make_(python::kAssert, {holds, Argument(message)});
}

}  // namespace fx
