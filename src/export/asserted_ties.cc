// Which sizes a graph asserts to be expressions of others.
#include <fxgraph/export/free_sizes.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/contract/contract.h>
#include <fxgraph/ops/python_symbols.h>

namespace fx::pt2 {
namespace {

bool has_symbol(const SizeExpr& expr, const std::string& name) {
  bool has = false;
  expr.for_each_symbol([&](const std::string& each) { has |= each == name; });
  return has;
}

class Ties {
 public:
  explicit Ties(const SizePlaces& places) : places_(places) {}

  // Of two sizes alone the later one follows the first.
  void add(SizeExpr left, SizeExpr right) {
    if (right.is_symbol() && (!left.is_symbol() || place(right) > place(left))) std::swap(left, right);
    if (!left.is_symbol() || right.is_integer() || right.is_real() || ties_.contains(left.name())) return;
    right = with_sizes(right, ties_);
    if (has_symbol(right, left.name())) return;
    const SizeTies now = {{left.name(), right}};
    for (auto& [each, expr] : ties_) expr = with_sizes(expr, now);
    ties_.emplace(left.name(), std::move(right));
  }
  SizeTies take() { return std::move(ties_); }

 private:
  std::ptrdiff_t place(const SizeExpr& symbol) const {
    return std::ranges::find(places_, symbol.name(), [](const auto& each) { return each.first; }) - places_.begin();
  }
  const SizePlaces& places_;
  SizeTies ties_;
};

}  // namespace

SizeExpr with_sizes(const SizeExpr& expr, const SizeTies& sizes) {
  if (expr.is_symbol()) {
    const auto found = sizes.find(expr.name());
    return found == sizes.end() ? expr : found->second;
  }
  if (expr.kind() != SizeExpr::Kind::call) return expr;
  std::vector<SizeExpr> operands;
  for (const SizeExpr& each : expr.operands()) operands.push_back(with_sizes(each, sizes));
  return SizeExpr::call(expr.name(), std::move(operands));
}

SizeTies asserted_ties(const Graph& graph, const SizePlaces& places,
                       const std::function<std::string(const Node&)>& place_of) {
  Ties ties(places);
  for (const Node* node : graph.find_nodes(Op::call_function, python::kAssert)) {
    const std::optional<SizeExpr> condition = asserted(*node, place_of);
    if (condition && condition->name() == "Equality") ties.add(condition->operands()[0], condition->operands()[1]);
  }
  return ties.take();
}

}  // namespace fx::pt2
