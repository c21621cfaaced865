#include <fxgraph/export/size_arithmetic.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace fx::pt2 {
namespace {

// What a call is in SymPy's words; "Sub" and "Neg" are sums there.
struct ArithmeticCall {
  std::string_view target;
  const char* function;
};
constexpr ArithmeticCall kArithmeticCalls[] = {
    {"aten::add.int", "Add"},
    {"operator.add", "Add"},
    {"aten::sub.int", "Sub"},
    {"operator.sub", "Sub"},
    {"aten::mul.int", "Mul"},
    {"operator.mul", "Mul"},
    {"aten::neg.int", "Neg"},
    {"operator.neg", "Neg"},
    {"aten::floordiv.int", "FloorDiv"},
    {"operator.floordiv", "FloorDiv"},
    {"aten::remainder.int", "PythonMod"},
    {"operator.mod", "PythonMod"},
    {"prim::min.int", "Min"},
    {"builtins.min", "Min"},
    {"torch.sym_min", "Min"},
    {"prim::max.int", "Max"},
    {"builtins.max", "Max"},
    {"torch.sym_max", "Max"},
    {"torch.sym_sum", "Add"},
};

SizeExpr negative(SizeExpr expr) {
  if (expr.is_integer()) return SizeExpr::integer(-expr.value());
  return SizeExpr::call("Mul", {SizeExpr::integer(-1), std::move(expr)});
}

// Values of one symbol that tell expressions apart: the first ones, those about powers of two, those about the example.
std::vector<std::int64_t> telling_values(std::int64_t example, const SizeRange& range) {
  constexpr std::int64_t kFirst = 70, kFarthest = 1024;
  const std::int64_t least = std::max<std::int64_t>(range.min.value_or(2), 2);
  const std::int64_t most = std::min(range.max.value_or(kFarthest), std::max(kFarthest, example));
  std::vector<std::int64_t> values;
  for (std::int64_t value = least; value < least + kFirst; ++value) values.push_back(value);
  for (std::int64_t power = 64; power <= kFarthest; power *= 2)
    values.insert(values.end(), {power - 1, power, power + 1});
  for (const std::int64_t offset : {-2, -1, 1, 2}) values.push_back(example + offset);
  std::erase_if(values, [&](std::int64_t value) { return value < least || value > most; });
  return values;
}

}  // namespace

std::string number_operator(Symbol target) {
  constexpr std::string_view kAten = "aten::", kInt = ".int";
  std::string_view name = target.view();
  if (!name.starts_with(kAten)) return std::string(name);
  name.remove_prefix(kAten.size());
  if (name.ends_with(kInt)) name.remove_suffix(kInt.size());
  return name.find('.') == name.npos ? "operator." + std::string(name) : target.str();
}

std::optional<SizeExpr> said_by(const Node& node, const std::function<std::optional<SizeExpr>(const Node&)>& value_of) {
  auto row = std::ranges::find(kArithmeticCalls, node.target().view(), &ArithmeticCall::target);
  if (row == std::end(kArithmeticCalls)) {
    const std::string name = number_operator(node.target());
    row = std::ranges::find(kArithmeticCalls, std::string_view(name), &ArithmeticCall::target);
  }
  if (row == std::end(kArithmeticCalls) || !node.kwargs().empty() || node.args().empty()) return std::nullopt;
  const bool of_list = node.args().size() == 1 && node.arg(0).is_sequence();
  std::vector<SizeExpr> operands;
  for (const Argument& arg : of_list ? node.arg(0).elements() : node.args()) {
    std::optional<SizeExpr> operand = arg.is_int()    ? std::optional(SizeExpr::integer(arg.as_int()))
                                      : arg.is_node() ? value_of(arg.node())
                                                      : std::nullopt;
    if (!operand) return std::nullopt;
    operands.push_back(std::move(*operand));
  }
  const std::string_view function = row->function;
  if (function == "Neg") return operands.size() == 1 ? std::optional(negative(operands[0])) : std::nullopt;
  if (operands.size() < 2 || (!of_list && operands.size() > 2)) return std::nullopt;
  SizeExpr made = function == "Sub" ? SizeExpr::call("Add", {operands[0], negative(operands[1])})
                                    : SizeExpr::call(row->function, std::move(operands));
  bool varies = false;
  made.for_each_symbol([&](const std::string&) { varies = true; });
  if (varies) return made;
  const std::optional<std::int64_t> value = made.evaluate({});
  return value ? std::optional(SizeExpr::integer(*value)) : std::nullopt;
}

std::optional<Symbols> where_they_differ(const SizeExpr& left, const SizeExpr& right, const Symbols& example,
                                         const SizeRanges& ranges, const std::function<bool(const Symbols&)>& takes) {
  if (left == right) return std::nullopt;
  std::map<std::string, std::vector<std::int64_t>> values;
  const auto add = [&](const std::string& symbol) {
    const auto range = ranges.find(symbol);
    const auto now = example.find(symbol);
    if (now != example.end())
      values.try_emplace(symbol, telling_values(now->second, range == ranges.end() ? SizeRange() : range->second));
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
