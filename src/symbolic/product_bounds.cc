#include <fxgraph/symbolic/product_bounds.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fx::internal {
namespace {

/// The same of names that are 0 at the least: `a` is `a' - 1` where it is at least -1.
SizeExpr from_least(const SizeFacts& facts, const SizeExpr& expr, SizeFacts& from_zero) {
  if (expr.is_integer()) return expr;
  if (expr.is_call("Add") || expr.is_call("Mul")) {
    std::vector<SizeExpr> operands;
    for (const SizeExpr& each : expr.operands()) operands.push_back(from_least(facts, each, from_zero));
    return SizeExpr::call(expr.name(), std::move(operands));
  }
  const std::optional<std::int64_t> least = facts.range(expr).min;
  const std::string name = "(" + expr.str() + ")";
  from_zero.declare(name, least ? SizeRange{0, std::nullopt} : SizeRange());
  return SizeExpr::symbol(name) + least.value_or(0);
}

}  // namespace

bool has_products(const SizeExpr& expr) {
  const auto varies = [](const SizeExpr& factor) { return !factor.is_integer(); };
  const auto is_product = [&](const SizeExpr& term) {
    return term.is_call("Mul") && std::ranges::count_if(term.operands(), varies) > 1;
  };
  return expr.is_call("Add") && std::ranges::any_of(expr.operands(), is_product);
}

std::optional<std::int64_t> least_of_products(const SizeFacts& facts, const SizeExpr& expr) {
  SizeFacts from_zero;
  const SizeExpr shifted = from_least(facts, expr, from_zero).simplified();
  const auto has_least = [&](const SizeExpr& term) { return from_zero.range(term).min.has_value(); };
  if (!std::ranges::all_of(shifted.operands(), has_least)) return std::nullopt;
  return from_zero.range(shifted).min;
}

}  // namespace fx::internal
