#include <fxgraph/symbolic/size_facts.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <set>
#include <utility>

#include <fxgraph/symbolic/product_bounds.h>
#include <fxgraph/symbolic/relations.h>

namespace fx {
namespace {

using Bound = std::optional<std::int64_t>;

constexpr std::int64_t kMostResidues = 64;

Bound plus(Bound a, Bound b) {
  std::int64_t sum = 0;
  return a && b && !__builtin_add_overflow(*a, *b, &sum) ? Bound(sum) : std::nullopt;
}
Bound times(Bound a, Bound b) {
  std::int64_t product = 0;
  return a && b && !__builtin_mul_overflow(*a, *b, &product) ? Bound(product) : std::nullopt;
}

SizeRange sum(const SizeRange& a, const SizeRange& b) { return {plus(a.min, b.min), plus(a.max, b.max)}; }

SizeRange product(const SizeRange& a, const SizeRange& b) {
  if (a.min && a.min == a.max && *a.min < 0) return {times(a.min, b.max), times(a.min, b.min)};
  if (a.min && *a.min >= 0 && b.min && *b.min >= 0) return {times(a.min, b.min), times(a.max, b.max)};
  if (a.min && a.min == a.max) return {times(a.min, b.min), times(a.min, b.max)};
  if (a.max && *a.max <= 0 && b.min && *b.min >= 0) return {times(a.min, b.max), times(a.max, b.min)};
  if (!a.min || !a.max || !b.min || !b.max) return {};
  const Bound ends[] = {times(a.min, b.min), times(a.min, b.max), times(a.max, b.min), times(a.max, b.max)};
  if (std::ranges::find(ends, Bound()) != std::end(ends)) return {};
  return {*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
}

SizeRange quotient(const SizeRange& a, const SizeRange& b) {
  const auto down = [](Bound x, Bound y) { return x && y && *y > 0 ? Bound(floor_div(*x, *y).value()) : std::nullopt; };
  if (!b.min || *b.min < 1) return {};
  SizeRange range;
  if (a.min) range.min = *a.min >= 0 ? (b.max ? down(a.min, b.max) : Bound(0)) : down(a.min, b.min);
  if (a.max) range.max = *a.max >= 0 ? down(a.max, b.min) : (b.max ? down(a.max, b.max) : Bound(-1));
  return range;
}

SizeRange remainder(const SizeRange& a, const SizeRange& b) {
  if (!b.min || *b.min < 1) return {};
  SizeRange range{0, plus(b.max, -1)};
  if (a.min && *a.min >= 0 && a.max) range.max = range.max ? std::min(*range.max, *a.max) : *a.max;
  return range;
}

SizeRange larger(const SizeRange& a, const SizeRange& b) {
  SizeRange range;
  range.min = a.min && b.min ? std::max(*a.min, *b.min) : a.min ? a.min : b.min;
  if (a.max && b.max) range.max = std::max(*a.max, *b.max);
  return range;
}
SizeRange smaller(const SizeRange& a, const SizeRange& b) {
  SizeRange range;
  range.max = a.max && b.max ? std::min(*a.max, *b.max) : a.max ? a.max : b.max;
  if (a.min && b.min) range.min = std::min(*a.min, *b.min);
  return range;
}

struct BoundsRow {
  std::string_view function;
  SizeRange (*of)(const SizeRange&, const SizeRange&);
};
constexpr BoundsRow kBounds[] = {{"Add", sum},       {"Mul", product}, {"FloorDiv", quotient},
                                 {"Mod", remainder}, {"Max", larger},  {"Min", smaller}};

/// The terms of a canonical sum.
std::vector<SizeExpr> terms_of(const SizeExpr& expr) {
  return expr.is_call("Add") ? expr.operands() : std::vector<SizeExpr>{expr};
}

/// The whole factor of a canonical term.
std::int64_t factor_of(const SizeExpr& term) {
  if (term.is_integer()) return term.value();
  return term.is_call("Mul") && term.operands()[0].is_integer() ? term.operands()[0].value() : 1;
}

/// `f*atom + c`, of which there is nothing else.
struct OneTerm {
  SizeExpr atom;
  std::int64_t factor, constant;
};
std::optional<OneTerm> one_term(const SizeExpr& sum) {
  const std::vector<SizeExpr> terms = terms_of(sum);
  const std::int64_t factor = factor_of(terms[0]);
  if (sum.is_integer() || factor == 0 || terms.size() > 2 || (terms.size() == 2 && !terms[1].is_integer())) return {};
  const std::int64_t constant = terms.size() == 2 ? terms[1].value() : 0;
  constexpr std::int64_t kMost = std::int64_t{1} << 62;  // so that they can be negated, and rounded up
  if (factor <= -kMost || factor >= kMost || constant <= -kMost || constant >= kMost) return {};
  if (!terms[0].is_call("Mul") || !terms[0].operands()[0].is_integer()) return OneTerm{terms[0], factor, constant};
  const std::vector<SizeExpr> atoms(terms[0].operands().begin() + 1, terms[0].operands().end());
  return OneTerm{atoms.size() == 1 ? atoms[0] : SizeExpr::call("Mul", atoms), factor, constant};
}

/// What is at least 0 exactly where `difference` is, without a division of all of it: `x//2 - 3` is `x - 6`, nor a
/// number that the larger or smaller of two cannot be there: `Max(x, 0) - 5` is `x - 5`.
SizeExpr undivided(const SizeExpr& difference) {
  const std::optional<OneTerm> one = one_term(difference);
  if (!one) return difference;
  const bool is_larger = one->atom.is_call("Max");
  if ((is_larger || one->atom.is_call("Min")) && std::abs(one->factor) == 1 && one->atom.operands().size() == 2 &&
      one->atom.operands()[1].is_integer()) {
    const bool one_is_enough = is_larger == (one->factor == 1);
    const SizeExpr number = one->atom.operands()[1] * one->factor + one->constant;
    if (!number.is_integer() || (number.value() >= 0) == one_is_enough) return difference;
    return undivided(one->atom.operands()[0] * one->factor + one->constant);
  }
  if (!one->atom.is_call("FloorDiv")) return difference;
  const SizeExpr &above = one->atom.operands()[0], &by = one->atom.operands()[1];
  if (!by.is_integer() || by.value() < 1) return difference;
  return undivided(one->factor > 0 ? above - by * ceil_div(-one->constant, one->factor)
                                   : by * floor_div(one->constant, -one->factor) + by - 1 - above);
}

/// Every remainder as what is left by a division, so that both are one atom.
SizeExpr without_remainders(const SizeExpr& expr) {
  if (expr.operands().empty()) return expr;
  std::vector<SizeExpr> operands;
  for (const SizeExpr& operand : expr.operands()) operands.push_back(without_remainders(operand));
  if (expr.is_call("Mod")) return operands[0] - operands[1] * floor_div(operands[0], operands[1]);
  return SizeExpr::call(expr.name(), std::move(operands)).simplified();
}

/// The product of all whole divisors of symbols in the expression; 0 when there are other divisions, or too many.
std::int64_t divisors_in(const SizeExpr& expr, std::set<std::string>& divided) {
  std::int64_t product = 1;
  if (expr.is_call("FloorDiv")) {
    if (!expr.operands()[1].is_integer() || expr.operands()[1].value() < 1) return 0;
    product = expr.operands()[1].value();
    expr.operands()[0].for_each_symbol([&](const std::string& name) { divided.insert(name); });
  }
  for (const SizeExpr& operand : expr.operands()) {
    const std::int64_t inner = divisors_in(operand, divided);
    product = inner == 0 || product * inner > kMostResidues ? 0 : product * inner;
    if (product == 0) return 0;
  }
  return product;
}

Answer opposite(Answer answer) {
  return answer == Answer::yes ? Answer::no : answer == Answer::no ? Answer::yes : Answer::unknown;
}

}  // namespace

std::string SizeCondition::str() const {
  if (relation == SizeRelation::holds) return left.str() + " must hold";
  const auto row = std::ranges::find(internal::kRelations, relation, &internal::RelationRow::relation);
  const bool of_others = relation == SizeRelation::equal && right.varies();
  return left.str() + std::string(row->words) + (of_others ? "equal to " : "") + right.str();
}

SizeCondition condition_of(const SizeExpr& expression) {
  const internal::RelationRow* row = internal::find_relation(expression.name());
  if (!row || expression.operands().size() != 2) return {SizeRelation::holds, expression, {}};
  const SizeExpr &left = expression.operands()[0], &right = expression.operands()[1];
  const bool is_remainder = (left.is_call("Mod") || left.is_call("PythonMod")) && left.operands().size() == 2;
  if (row->relation == SizeRelation::equal && right == SizeExpr(0) && is_remainder)
    return {SizeRelation::multiple, left.operands()[0], left.operands()[1]};
  return {row->relation, left, right};
}

std::string_view function_of(SizeRelation relation) {
  const auto row = std::ranges::find(internal::kRelations, relation, &internal::RelationRow::relation);
  return row == std::end(internal::kRelations) ? std::string_view() : row->function;
}

SizeCondition SizeCondition::simplified() const {
  using R = SizeRelation;
  if (relation == R::holds || relation == R::multiple) return {relation, left.simplified(), right.simplified()};
  SizeExpr difference = (left - right).simplified();
  R kind = relation;
  if (kind == R::less || kind == R::at_most) difference = difference * -1;
  if (kind == R::less || kind == R::more) difference = difference - 1;
  if (kind != R::equal && kind != R::unequal) {
    kind = R::at_least;
    difference = undivided(difference);
  }
  if (factor_of(terms_of(difference)[0]) < 0) {
    difference = difference * -1;
    if (kind == R::at_least) kind = R::at_most;
  }
  if (const std::optional<OneTerm> one = one_term(difference)) {
    const SizeExpr number =
        kind == R::at_least ? ceil_div(-one->constant, one->factor) : floor_div(-one->constant, one->factor);
    const bool is_whole = one->constant % one->factor == 0;
    if (is_whole || kind == R::at_least || kind == R::at_most) return {kind, one->atom, number};
  }
  SizeExpr above, below;
  for (const SizeExpr& term : terms_of(difference)) {
    if (factor_of(term) < 0) {
      below = below - term;
    } else {
      above = above + term;
    }
  }
  return {kind, above, below};
}

void SizeCondition::for_each_symbol(const std::function<void(const std::string&)>& visit) const {
  left.for_each_symbol(visit);
  right.for_each_symbol(visit);
}

std::ostream& operator<<(std::ostream& out, const SizeCondition& condition) { return out << condition.str(); }

void SizeFacts::declare(const std::string& symbol, SizeRange range) { symbols_[symbol].range = range; }

SizeExpr SizeFacts::simplified(const SizeExpr& expr) const {
  if (expr.is_canonical()) {
    bool is_replaced = false;
    if (!values_.empty())
      expr.for_each_symbol([&](const std::string& name) { is_replaced = is_replaced || values_.contains(name); });
    if (!is_replaced) return expr;
  }
  return expr.substituted([&](const SizeExpr& symbol) {
    const auto known = values_.find(symbol.name());
    return known == values_.end() ? symbol : known->second;
  });
}

SizeRange SizeFacts::range(const SizeExpr& expr) const {
  if (expr.is_integer()) return {expr.value(), expr.value()};
  if (expr.is_symbol()) {
    const auto known = symbols_.find(expr.name());
    return known == symbols_.end() ? SizeRange{} : known->second.range;
  }
  const auto row = std::ranges::find(kBounds, std::string_view(expr.name()), &BoundsRow::function);
  if (row == std::end(kBounds) || expr.operands().empty() || expr.is_real()) return {};
  SizeRange result = range(expr.operands()[0]);
  for (std::size_t i = 1; i < expr.operands().size(); ++i) result = row->of(result, range(expr.operands()[i]));
  if (!result.min && internal::has_products(expr)) result.min = internal::least_of_products(*this, expr);
  return result;
}

Answer SizeFacts::holds(const SizeCondition& condition) const {
  const SizeExpr left = simplified(condition.left), right = simplified(condition.right);
  switch (condition.relation) {
    case SizeRelation::equal: return is_zero(left - right);
    case SizeRelation::unequal: return opposite(is_zero(left - right));
    case SizeRelation::at_least: return is_at_least_zero(left - right);
    case SizeRelation::at_most: return is_at_least_zero(right - left);
    case SizeRelation::more: return is_at_least_zero(left - right - 1);
    case SizeRelation::less: return is_at_least_zero(right - left - 1);
    case SizeRelation::multiple: return is_zero(floor_mod(left, right));
    case SizeRelation::holds: {
      const std::optional<std::int64_t> value = left.evaluate({});
      return value ? (*value != 0 ? Answer::yes : Answer::no) : Answer::unknown;
    }
  }
  return Answer::unknown;
}

Answer SizeFacts::is_zero(const SizeExpr& difference) const {
  if (difference.is_integer()) return difference.value() == 0 ? Answer::yes : Answer::no;
  const SizeRange bounds = range(difference);
  if ((bounds.min && *bounds.min > 0) || (bounds.max && *bounds.max < 0)) return Answer::no;
  if (bounds.min == 0 && bounds.max == 0) return Answer::yes;
  // 2*a + 4*b + 1 is never 0.
  std::int64_t common = 0, constant = 0;
  for (const SizeExpr& term : terms_of(difference)) {
    (term.is_integer() ? constant : common) = term.is_integer() ? term.value() : std::gcd(common, factor_of(term));
  }
  if (common != 0 && constant % common != 0) return Answer::no;
  if (is_at_least_zero(difference - 1) == Answer::yes || is_at_least_zero(difference * -1 - 1) == Answer::yes)
    return Answer::no;
  return by_residues(difference);
}

Answer SizeFacts::is_at_least_zero(const SizeExpr& divided) const {
  const SizeExpr difference = undivided(divided);
  const SizeRange bounds = range(difference);
  if (bounds.min && *bounds.min >= 0) return Answer::yes;
  if (bounds.max && *bounds.max < 0) return Answer::no;
  for (const SizeExpr& fact : at_least_zero_) {
    // difference == fact + something of at least 0; -difference - 1 the same.
    if (const SizeRange rest = range(difference - fact); rest.min && *rest.min >= 0) return Answer::yes;
    if (const SizeRange rest = range(difference * -1 - fact); rest.min && *rest.min > 0) return Answer::no;
  }
  return Answer::unknown;
}

/// Each symbol that is divided as every residue and a multiple: then nothing is left to divide.
Answer SizeFacts::by_residues(const SizeExpr& difference) const {
  const SizeExpr plain = without_remainders(difference);
  std::set<std::string> divided;
  const std::int64_t step = divisors_in(plain, divided);
  if (plain.is_integer()) return plain.value() == 0 ? Answer::yes : Answer::no;
  std::int64_t cases = 1;
  for (std::size_t i = 0; i < divided.size(); ++i) cases *= step <= kMostResidues ? step : 0;
  if (step < 2 || divided.empty() || divided.size() > 2 || cases > kMostResidues) return Answer::unknown;
  bool always = true, never = true;
  for (std::int64_t residues = 0; residues < cases; ++residues) {
    std::map<std::string, std::int64_t> residue;
    std::int64_t rest = residues;
    bool possible = true;
    for (const std::string& name : divided) {
      residue[name] = rest % step;
      rest /= step;
      const auto known = symbols_.find(name);
      const std::int64_t divisor = known == symbols_.end() ? 1 : std::gcd(known->second.divisor, step);
      possible = possible && residue[name] % divisor == 0;
    }
    if (!possible) continue;
    const SizeExpr value = plain.substituted([&](const SizeExpr& symbol) {
      const auto found = residue.find(symbol.name());
      return found == residue.end() ? symbol : symbol * step + found->second;
    });
    always = always && value == SizeExpr(0);
    never = never && value.is_integer() && value.value() != 0;
  }
  return always ? Answer::yes : never ? Answer::no : Answer::unknown;
}

void SizeFacts::replace(const std::string& symbol, const SizeExpr& value) {
  const Symbol known = symbols_[symbol];
  values_[symbol] = value;
  for (auto& [name, other] : values_) other = simplified(other);
  for (SizeExpr& fact : at_least_zero_) fact = simplified(fact);
  // What was known of the symbol is known of its value.
  if (known.range.min) assume({SizeRelation::at_least, value, *known.range.min});
  if (known.range.max) assume({SizeRelation::at_most, value, *known.range.max});
  if (known.divisor > 1) assume({SizeRelation::multiple, value, known.divisor});
}

/// From `factor*symbol + constant >= 0`, what the symbol lies between; else a fact.
void SizeFacts::narrow(const SizeExpr& divided) {
  const SizeExpr difference = undivided(divided);
  const std::optional<OneTerm> one = one_term(difference);
  if (!one || !one->atom.is_symbol()) {
    if (!difference.is_integer()) at_least_zero_.push_back(difference);
    return;
  }
  SizeRange& range = symbols_[one->atom.name()].range;
  if (one->factor > 0) {
    const std::int64_t least = ceil_div(-one->constant, one->factor).value();
    range.min = range.min ? std::max(*range.min, least) : least;
  } else {
    const std::int64_t most = floor_div(one->constant, -one->factor).value();
    range.max = range.max ? std::min(*range.max, most) : most;
  }
}

void SizeFacts::assume(const SizeCondition& condition) {
  if (holds(condition) == Answer::yes) return;
  const SizeExpr left = simplified(condition.left), right = simplified(condition.right);
  switch (condition.relation) {
    case SizeRelation::at_least: return narrow(left - right);
    case SizeRelation::at_most: return narrow(right - left);
    case SizeRelation::more: return narrow(left - right - 1);
    case SizeRelation::less: return narrow(right - left - 1);
    case SizeRelation::unequal:
    case SizeRelation::holds: return;
    case SizeRelation::multiple:
      if (left.is_symbol() && right.is_integer() && right.value() > 0) {
        Symbol& symbol = symbols_[left.name()];
        symbol.divisor = std::lcm(symbol.divisor, right.value());
      }
      return;
    case SizeRelation::equal: break;
  }
  // The last symbol that stands alone, with the factor 1 or -1, is the others.
  const SizeExpr difference = left - right;
  std::vector<SizeExpr> terms = terms_of(difference);
  for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
    const std::int64_t factor = factor_of(*term);
    const SizeExpr atom = *term * factor;
    if (std::abs(factor) != 1 || !atom.is_symbol()) continue;
    const SizeExpr value = (*term - difference) * factor;
    bool holds_itself = false;
    value.for_each_symbol([&](const std::string& name) { holds_itself |= name == atom.name(); });
    if (!holds_itself) return replace(atom.name(), value);
  }
  // 8*x - 32 == 0
  const std::optional<OneTerm> one = one_term(difference);
  if (one && one->atom.is_symbol() && one->constant % one->factor == 0)
    replace(one->atom.name(), -one->constant / one->factor);
}

}  // namespace fx
