#include <fxgraph/symbolic/size_solution.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace fx {
namespace {

constexpr std::int64_t kMostPeriod = 4096, kMostTried = 200000;

/// After how many numbers the expression goes on as before; 0 where it is of another form, or after too many.
std::int64_t period_of(const SizeExpr& expr, std::string& symbol) {
  if (expr.is_integer()) return 1;
  if (expr.is_symbol()) {
    if (symbol.empty()) symbol = expr.name();
    return symbol == expr.name() ? 1 : 0;
  }
  const bool divides = expr.is_call("FloorDiv") || expr.is_call("Mod") || expr.is_call("PythonMod");
  if (!divides && !expr.is_call("Add") && !expr.is_call("Mul")) return 0;
  const std::vector<SizeExpr>& operands = expr.operands();
  if (divides && (!operands[1].is_integer() || operands[1].value() < 1)) return 0;
  const auto varies = [](const SizeExpr& each) { return !each.is_integer(); };
  if (expr.is_call("Mul") && std::ranges::count_if(operands, varies) > 1) return 0;
  std::int64_t period = divides ? operands[1].value() : 1;
  for (std::size_t i = 0; i < (divides ? 1 : operands.size()); ++i) {
    const std::int64_t inner = period_of(operands[i], symbol);
    if (inner == 0) return 0;
    period = divides ? period * inner : std::lcm(period, inner);
    if (period > kMostPeriod) return 0;
  }
  return period;
}

}  // namespace

std::optional<SizeCondition> solved(const SizeCondition& condition) {
  using R = SizeRelation;
  const bool is_below = condition.relation == R::at_most || condition.relation == R::less;
  if (!is_below && condition.relation != R::at_least && condition.relation != R::more) return std::nullopt;
  SizeExpr rest = is_below ? condition.right - condition.left : condition.left - condition.right;
  if (condition.relation == R::less || condition.relation == R::more) rest = rest - 1;
  std::string symbol;
  const std::int64_t period = period_of(rest, symbol);
  if (period == 0 || symbol.empty()) return std::nullopt;
  const auto at = [&](std::int64_t number) { return rest.evaluate({{symbol, number}}); };
  const auto first = at(0), next = at(period);
  if (!first || !next || *first == *next) return std::nullopt;
  const std::int64_t growth = *next - *first;
  // Past this number all others go on as those of the last period.
  std::int64_t farthest = 0;
  for (std::int64_t number = 0; number < period; ++number) {
    const auto value = at(number);
    if (!value) return std::nullopt;
    farthest = std::max(farthest, growth > 0 ? -*value / growth : *value / -growth);
  }
  if (farthest > kMostTried / period - 2) return std::nullopt;
  const bool begins = *first >= 0;
  std::optional<std::int64_t> change;
  for (std::int64_t number = 1; number < (farthest + 2) * period; ++number) {
    const auto value = at(number);
    if (!value) return std::nullopt;
    if ((*value >= 0) == (begins != change.has_value())) continue;
    if (change) return std::nullopt;
    change = number;
  }
  if (!change) return begins ? std::optional(SizeCondition{R::at_least, SizeExpr::symbol(symbol), 0}) : std::nullopt;
  return SizeCondition{begins ? R::at_most : R::at_least, SizeExpr::symbol(symbol), begins ? *change - 1 : *change};
}

}  // namespace fx
