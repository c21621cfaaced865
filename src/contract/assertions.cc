#include <fxgraph/contract/assertions.h>

#include <algorithm>
#include <optional>

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

struct CallRow {
  std::string_view function;  // SymPy's
  std::string_view target;
};
constexpr CallRow kCalls[] = {{"Add", "operator.add"},           {"Mul", "operator.mul"},
                              {"FloorDiv", "operator.floordiv"}, {"CleanDiv", "operator.floordiv"},
                              {"Mod", "operator.mod"},           {"PythonMod", "operator.mod"},
                              {"Min", "prim::min.int"},          {"Max", "prim::max.int"},
                              {"And", "aten::__and__.bool"},     {"Or", "aten::__or__.bool"},
                              {"Not", "aten::__not__"},          {"Equality", "operator.eq"},
                              {"Unequality", "operator.ne"},     {"GreaterThan", "operator.ge"},
                              {"LessThan", "operator.le"},       {"StrictGreaterThan", "operator.gt"},
                              {"StrictLessThan", "operator.lt"}};

Symbol target_of(std::string_view function) {
  const auto row = std::ranges::find(kCalls, function, &CallRow::function);
  return row == std::end(kCalls) ? Symbol() : Symbol(row->target);
}

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
  return !target_of(expression.name()).empty() && !expression.operands().empty() && !expression.is_real() &&
         std::ranges::all_of(expression.operands(), can_write);
}

Argument AssertionWriter::call(Symbol target, const Argument& a, const Argument& b) const {
  return Argument(make_(target, {a, b}));
}

/// What is subtracted comes after what it is subtracted from.
Argument AssertionWriter::sum(const SizeExpr& expression, const NumberOf& number_of) const {
  std::vector<SizeExpr> terms = expression.operands();
  std::ranges::stable_partition(terms, [](const SizeExpr& term) { return !subtracted(term); });
  Argument made = number(terms[0], number_of);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const std::optional<SizeExpr> less = subtracted(terms[i]);
    made = call(less ? python::kSub : python::kAdd, made, number(less ? *less : terms[i], number_of));
  }
  return made;
}

Argument AssertionWriter::number(const SizeExpr& expression, const NumberOf& number_of) const {
  if (expression.is_integer()) return expression.value();
  if (expression.is_symbol()) return number_of(expression.name());
  const Symbol target = target_of(expression.name());
  if (!can_write(expression))
    throw Error(ErrorKind::unsupported, expression.str() + " is no arithmetic of whole numbers");
  if (expression.is_call("Add")) return sum(expression, number_of);
  Argument made = number(expression.operands()[0], number_of);
  if (expression.operands().size() == 1) return Argument(make_(target, {made}));
  for (std::size_t i = 1; i < expression.operands().size(); ++i)
    made = call(target, made, number(expression.operands()[i], number_of));
  return made;
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
  if (right.is_none()) return call(is_equality ? python::kIs : python::kIsNot, left, right);
  return call(target_of(function_of(relation)), left, right);
}

void AssertionWriter::add(const Argument& holds, std::string_view message) const {
  make_(python::kAssert, {holds, Argument(message)});
}

}  // namespace fx
