#include <fxgraph/export/size_arithmetic.h>

#include <algorithm>
#include <set>
#include <vector>

namespace fx::pt2 {
namespace {

void add_constants(const SizeExpr& expr, std::set<std::int64_t>& constants) {
  if (expr.is_integer()) constants.insert(expr.value());
  for (const SizeExpr& operand : expr.operands()) add_constants(operand, constants);
}

// Values of one symbol that tell expressions apart: the first ones, those about powers of two, those about the example.
std::vector<std::int64_t> telling_values(std::int64_t example, const SizeRange& range,
                                         const std::set<std::int64_t>& constants) {
  constexpr std::int64_t kFirst = 70, kFarthest = 1024;
  const std::int64_t least = std::max<std::int64_t>(range.min.value_or(2), 2);
  const std::int64_t most = std::min(range.max.value_or(kFarthest), std::max(kFarthest, example));
  const std::int64_t limit = range.max.value_or(INT64_MAX);
  std::vector<std::int64_t> values;
  for (std::int64_t value = least; value < least + kFirst; ++value) values.push_back(value);
  for (std::int64_t power = 64; power <= kFarthest; power *= 2)
    values.insert(values.end(), {power - 1, power, power + 1});
  for (const std::int64_t offset : {-2, -1, 1, 2}) values.push_back(example + offset);
  std::erase_if(values, [&](std::int64_t value) { return value < least || value > most; });
  // On both sides of what it is compared with, as it is or behind a small factor or divisor.
  constexpr std::int64_t kBeyond = std::int64_t{1} << 40;
  for (const std::int64_t constant : constants) {
    if (constant <= 0 || constant > kBeyond) continue;
    for (const std::int64_t about : {constant, 2 * constant, constant / 2, 4 * constant, constant / 4}) {
      for (const std::int64_t value : {about - 3, about - 1, about, about + 1, about + 3}) {
        if (value > most && value <= limit && value >= least) values.push_back(value);
      }
    }
  }
  return values;
}

}  // namespace

std::optional<Symbols> where_they_differ(const SizeExpr& left, const SizeExpr& right, const Symbols& example,
                                         const SizeRanges& ranges, const std::function<bool(const Symbols&)>& takes) {
  if (left == right) return std::nullopt;
  std::map<std::string, std::vector<std::int64_t>> values;
  std::set<std::int64_t> constants;
  add_constants(left, constants);
  add_constants(right, constants);
  const auto add = [&](const std::string& symbol) {
    const auto range = ranges.find(symbol);
    const auto now = example.find(symbol);
    if (now != example.end())
      values.try_emplace(symbol,
                         telling_values(now->second, range == ranges.end() ? SizeRange() : range->second, constants));
  };
  left.for_each_symbol(add);
  right.for_each_symbol(add);
  const auto differ = [&](const Symbols& here) { return left.evaluate(here) != right.evaluate(here) && takes(here); };
  std::size_t rounds = 0;
  for (const auto& [symbol, of_one] : values) {
    rounds = std::max(rounds, of_one.size());
    for (const std::int64_t value : of_one) {
      Symbols here = example;
      here[symbol] = value;
      if (differ(here)) return here;
    }
  }
  // All at once, each at a stride of its own through its values.
  for (std::size_t i = 0; i < rounds; ++i) {
    Symbols here = example;
    std::size_t stride = 1;
    for (const auto& [symbol, of_one] : values) {
      if (!of_one.empty()) here[symbol] = of_one[i * stride % of_one.size()];
      stride += 2;
    }
    if (differ(here)) return here;
  }
  return std::nullopt;
}

}  // namespace fx::pt2
