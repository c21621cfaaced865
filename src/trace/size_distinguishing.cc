#include <fxgraph/trace/size_distinguishing.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

namespace fx::internal {
namespace {

constexpr std::int64_t kFarthest = 1024;

// The first two sizes at which it steps, and the last.
template <typename Value>
std::vector<std::int64_t> steps_of(const Value& value) {
  std::vector<std::int64_t> steps;
  std::int64_t at = 2;
  for (; at <= kFarthest && steps.size() < 2; ++at) {
    if (value(at) != value(at - 1)) steps.push_back(at);
  }
  for (std::int64_t last = kFarthest; last >= at; --last) {
    if (value(last) == value(last - 1)) continue;
    steps.push_back(last);
    break;
  }
  return steps;
}

// The symbol of which it is made, if that is one.
std::string only_symbol(const SizeExpr& size) {
  std::set<std::string> symbols;
  size.for_each_symbol([&](const std::string& name) { symbols.insert(name); });
  return symbols.size() == 1 ? *symbols.begin() : std::string();
}

std::optional<std::int64_t> at(const SizeExpr& size, const std::string& symbol, std::int64_t value) {
  return size.evaluate({{symbol, value}});
}

bool is_bound(const SizeExpr& size) { return size.is_call("Min") || size.is_call("Max"); }

}  // namespace

std::vector<DistinguishingSize> distinguishing_sizes(
    const std::vector<SizeExpr>& explained, const std::function<bool(const std::string&, std::int64_t)>& allows) {
  // What bounds it hides it: it is seen only where each bound gives what it takes.
  using Bounds = std::vector<std::pair<SizeExpr, SizeExpr>>;  // a minimum or maximum, and what of it is looked at
  std::set<DistinguishingSize> found;
  std::set<std::pair<SizeExpr, Bounds>> seen;
  std::vector<std::pair<SizeExpr, Bounds>> open;
  for (const SizeExpr& size : explained) open.emplace_back(size, Bounds());
  while (!open.empty()) {
    const auto [size, bounds] = std::move(open.back());
    open.pop_back();
    if (size.operands().empty() || !seen.emplace(size, bounds).second) continue;
    const std::string symbol = only_symbol(size);
    for (const SizeExpr& of : size.operands()) {
      Bounds around = bounds;
      if (!symbol.empty() && is_bound(size)) around.emplace_back(size, of);
      open.emplace_back(of, std::move(around));
    }
    if (symbol.empty()) continue;
    std::vector<std::int64_t> steps;
    const auto value = [&, &size = size](std::int64_t n) { return at(size, symbol, n); };
    if (size.is_call("FloorDiv")) {
      steps = steps_of(value);
    } else if (size.is_call("Mod")) {
      // Where it does not go on as before.
      steps = steps_of([&](std::int64_t n) { return std::abs(value(n + 1).value_or(0) - value(n).value_or(0)); });
    } else if (is_bound(size)) {
      steps = steps_of([&, &size = size](std::int64_t n) { return value(n) == at(size.operands()[0], symbol, n); });
    }
    for (const std::int64_t step : steps) {
      for (const std::int64_t n : {step - 1, step}) {
        const bool is_seen = std::ranges::all_of(
            bounds, [&](const auto& each) { return at(each.first, symbol, n) == at(each.second, symbol, n); });
        if (is_seen && allows(symbol, n)) found.insert({symbol, n});
      }
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace fx::internal
