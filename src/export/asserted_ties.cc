// Which sizes a graph asserts to be expressions of others.
#include <fxgraph/export/free_sizes.h>
#include <fxgraph/export/size_arithmetic.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace fx::pt2 {
namespace {

constexpr std::size_t kMostTerms = 32;  // of an expression: those that traces assert have few

bool has_symbol(const SizeExpr& expr, const std::string& name) {
  bool has = false;
  expr.for_each_symbol([&](const std::string& each) { has |= each == name; });
  return has;
}

std::size_t count_terms(const SizeExpr& expr) {
  std::size_t count = 1;
  for (const SizeExpr& each : expr.operands()) count += count_terms(each);
  return count;
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
  static const Symbol kAssert("torch._assert");
  std::unordered_map<const Node*, SizeExpr> known;  // look-up only
  const auto value_of = [&](const Node& node) -> std::optional<SizeExpr> {
    const auto found = known.find(&node);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  };
  Ties ties(places);
  for (const Node& node : graph.nodes()) {
    if (!node.is(Op::call_function)) continue;
    if (node.target() == kAssert && node.args().size() > 0 && node.arg(0).is_node()) {
      const std::optional<SizeExpr> asserted = value_of(node.arg(0).node());
      if (asserted && asserted->name() == "Equality") ties.add(asserted->operands()[0], asserted->operands()[1]);
      continue;
    }
    const std::string place = place_of(node);
    const std::optional<SizeExpr> expr = place.empty() ? said_by(node, value_of) : SizeExpr::symbol(place);
    if (expr && varies(*expr) && count_terms(*expr) <= kMostTerms) known.emplace(&node, *expr);
  }
  return ties.take();
}

}  // namespace fx::pt2
