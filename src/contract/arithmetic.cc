#include <fxgraph/contract/arithmetic.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/symbolic/relations.h>

namespace fx {
namespace {

// What a call is in SymPy's words; "Sub" and "Neg" are sums there. Of several that are the same the first is written,
// where it is of whole numbers.
struct ArithmeticCall {
  std::string_view target;
  std::string_view function;
};
constexpr ArithmeticCall kArithmeticCalls[] = {
    {"operator.add", "Add"},
    {"aten::add.int", "Add"},
    {"operator.sub", "Sub"},
    {"aten::sub.int", "Sub"},
    {"operator.mul", "Mul"},
    {"aten::mul.int", "Mul"},
    {"operator.neg", "Neg"},
    {"aten::neg.int", "Neg"},
    {"operator.floordiv", "FloorDiv"},
    {"aten::floordiv.int", "FloorDiv"},
    {"operator.mod", "PythonMod"},
    {"aten::remainder.int", "PythonMod"},
    {"prim::min.int", "Min"},
    {"builtins.min", "Min"},
    {"torch.sym_min", "Min"},
    {"prim::max.int", "Max"},
    {"builtins.max", "Max"},
    {"torch.sym_max", "Max"},
    {"torch.sym_sum", "Add"},
    {"aten::add.float", "Add"},
    {"aten::add.float_int", "Add"},
    {"aten::add.int_float", "Add"},
    {"aten::sub.float", "Sub"},
    {"aten::sub.float_int", "Sub"},
    {"aten::sub.int_float", "Sub"},
    {"aten::mul.float", "Mul"},
    {"aten::mul.float_int", "Mul"},
    {"aten::mul.int_float", "Mul"},
    {"aten::div.int", "TrueDiv"},
    {"aten::div.float", "TrueDiv"},
    {"operator.truediv", "TrueDiv"},
    {"torch.sym_float", "ToFloat"},
    {"builtins.float", "ToFloat"},
    {"aten::Float.int", "ToFloat"},
    {"math.trunc", "TruncToInt"},
    {"builtins.int", "TruncToInt"},
    {"torch.sym_int", "TruncToInt"},
    {"aten::Int.float", "TruncToInt"},
    {"math.floor", "FloorToInt"},
    {"aten::floor.float", "FloorToInt"},
    {"math.ceil", "CeilToInt"},
    {"aten::ceil.float", "CeilToInt"},
    {"math.sqrt", "Sqrt"},
    {"torch._sym_sqrt", "Sqrt"},
    {"aten::sqrt.int", "Sqrt"},
    {"aten::sqrt.float", "Sqrt"},
    {"operator.sqrt", "Sqrt"},
    {"operator.div", "TrueDiv"},
    {"aten::Int.Scalar", "TruncToInt"},
    {"aten::Float.Scalar", "ToFloat"},
    {"operator.pow", "Power"},
    {"aten::pow.int", "FloatPow"},
    {"aten::pow.float", "FloatPow"},
    {"aten::pow.int_float", "FloatPow"},
    {"aten::pow.float_int", "FloatPow"},
    {"operator.lshift", "LShift"},
    {"operator.__lshift__", "LShift"},
    {"operator.rshift", "RShift"},
    {"operator.__rshift__", "RShift"},
    {"operator.gt", "StrictGreaterThan"},
    {"operator.lt", "StrictLessThan"},
    {"operator.ge", "GreaterThan"},
    {"operator.le", "LessThan"},
    {"operator.eq", "Equality"},
    {"operator.ne", "Unequality"},
    {"aten::__and__.bool", "And"},
    {"operator.and_", "And"},
    {"aten::__or__.bool", "Or"},
    {"operator.or_", "Or"},
    {"aten::__not__", "Not"},
    {"operator.not_", "Not"},
    {"operator.__not__", "Not"},
    {"torch.sym_not", "Not"},
    {"torch.sym_ite", "torch.sym_ite"},
};
constexpr std::string_view kChoice = "torch.sym_ite";

SizeExpr negative(SizeExpr expr) {
  if (expr.is_integer()) return SizeExpr::integer(-expr.value());
  return SizeExpr::call("Mul", {SizeExpr::integer(-1), std::move(expr)});
}

bool is_of_one(std::string_view function) {
  return function == "Neg" || function == "ToFloat" || function == "Sqrt" || function == "Not" ||
         function.ends_with("ToInt");
}

SizeExpr to_real(SizeExpr expr) {
  if (expr.is_real()) return expr;
  if (expr.is_integer()) return SizeExpr::real(static_cast<double>(expr.value()));
  return SizeExpr::call("ToFloat", {std::move(expr)});
}

/// Of what holds in any case, or in none.
std::optional<bool> truth_of(const SizeExpr& expr) {
  if (expr.is_call("true") || expr.is_call("false")) return expr.is_call("true");
  return expr.is_integer() ? std::optional(expr.value() != 0) : std::nullopt;
}
SizeExpr truth(bool holds) { return SizeExpr::call(holds ? "true" : "false", {}); }

/// An order of floats is no order of what is NaN.
SizeExpr negated_truth(SizeExpr operand) {
  const std::optional<bool> known = truth_of(operand);
  if (known) return truth(!*known);
  const bool is_equality = operand.is_call("Equality") || operand.is_call("Unequality");
  return is_equality || operand.is_call("Not") ? negated(operand) : SizeExpr::call("Not", {std::move(operand)});
}

/// And, or Or, which `decides` where one of its operands is that.
SizeExpr joined(std::string_view function, const std::vector<SizeExpr>& operands) {
  const bool decides = function == "Or";
  std::vector<SizeExpr> open;
  for (const SizeExpr& each : operands) {
    const std::optional<bool> known = truth_of(each);
    if (known == decides) return truth(decides);
    if (!known) open.push_back(each);
  }
  if (open.empty()) return truth(!decides);
  return open.size() == 1 ? open[0] : SizeExpr::call(std::string(function), std::move(open));
}

SizeExpr of_one(std::string_view function, SizeExpr operand) {
  if (function == "Neg") return negative(std::move(operand));
  if (function == "ToFloat") return to_real(std::move(operand));
  // Python's own name for it, OpaqueUnaryFn_sqrt, is one that PyTorch 2.14 cannot read back: it knows no bounds of it.
  if (function == "Sqrt") return SizeExpr::call("FloatPow", {to_real(std::move(operand)), SizeExpr::real(0.5)});
  if (function == "Not") return negated_truth(std::move(operand));
  return operand.is_real() ? SizeExpr::call(std::string(function), {std::move(operand)}) : operand;
}

// By a number of digits that is written out.
std::optional<SizeExpr> shifted(std::string_view function, const SizeExpr& value, const SizeExpr& by) {
  constexpr std::int64_t kMost = 62;
  if (!by.is_integer() || by.value() < 0 || by.value() > kMost || value.is_real()) return std::nullopt;
  const SizeExpr factor = SizeExpr::integer(std::int64_t{1} << by.value());
  if (function == "RShift") return SizeExpr::call("FloorDiv", {value, factor});
  return SizeExpr::call("Mul", {factor, value});
}

SizeExpr chosen(const SizeExpr& condition, SizeExpr then, SizeExpr otherwise) {
  if (then.is_real() || otherwise.is_real()) {
    then = to_real(std::move(then));
    otherwise = to_real(std::move(otherwise));
  }
  return SizeExpr::call("Piecewise",
                        {SizeExpr::call("ExprCondPair", {std::move(then), condition}),
                         SizeExpr::call("ExprCondPair", {std::move(otherwise), SizeExpr::call("true", {})})});
}

// Floats beside whole numbers make floats of those.
std::optional<SizeExpr> of_several(std::string_view function, std::vector<SizeExpr> operands) {
  if (function.ends_with("Shift")) return shifted(function, operands[0], operands[1]);
  if (function == "And" || function == "Or") return joined(function, operands);
  const bool is_real = function == "FloatPow" || std::ranges::any_of(operands, &SizeExpr::is_real);
  if (function == "Power") function = is_real ? "FloatPow" : "PowByNatural";
  if (function == "TrueDiv") function = is_real ? "FloatTrueDiv" : "IntTrueDiv";
  if (is_real) {
    if (function == "FloorDiv" || function == "PythonMod") return std::nullopt;
    for (SizeExpr& operand : operands) operand = to_real(std::move(operand));
  }
  if (function == "Sub") return SizeExpr::call("Add", {operands[0], negative(operands[1])});
  return SizeExpr::call(std::string(function), std::move(operands));
}

}  // namespace

bool is_condition(const SizeExpr& expr) {
  return internal::find_relation(expr.name()) || expr.is_call("And") || expr.is_call("Or") || expr.is_call("Not");
}

SizeExpr negated(const SizeExpr& condition) {
  if (condition.is_call("Not")) return condition.operands()[0];
  const internal::RelationRow* row = internal::find_relation(condition.name());
  return row ? SizeExpr::call(std::string(row->opposite), condition.operands()) : SizeExpr::call("Not", {condition});
}

Symbol call_that_is(std::string_view function) {
  if (function == "CleanDiv") function = "FloorDiv";
  if (function == "Mod") function = "PythonMod";
  constexpr std::string_view kOfWholeNumbers[] = {"Add", "Mul", "FloorDiv", "PythonMod", "Min",
                                                  "Max", "And", "Or",       "Not"};
  if (std::ranges::find(kOfWholeNumbers, function) == std::end(kOfWholeNumbers) && !internal::find_relation(function))
    return {};
  return Symbol(std::ranges::find(kArithmeticCalls, function, &ArithmeticCall::function)->target);
}

std::string number_operator(Symbol target) {
  constexpr std::string_view kAten = "aten::", kInt = ".int";
  std::string_view name = target.view();
  if (!name.starts_with(kAten)) return std::string(name);
  name.remove_prefix(kAten.size());
  if (name.ends_with(kInt)) name.remove_suffix(kInt.size());
  return name.find('.') == name.npos ? "operator." + std::string(name) : target.str();
}

std::string_view arithmetic_of(Symbol target) {
  const std::string name = number_operator(target);
  const auto* row = std::ranges::find(kArithmeticCalls, target.view(), &ArithmeticCall::target);
  if (row == std::end(kArithmeticCalls))
    row = std::ranges::find(kArithmeticCalls, std::string_view(name), &ArithmeticCall::target);
  return row == std::end(kArithmeticCalls) ? std::string_view() : row->function;
}

std::optional<SizeExpr> said_by(const Node& node, const std::function<std::optional<SizeExpr>(const Node&)>& value_of) {
  const std::string_view function = arithmetic_of(node.target());
  if (function.empty() || !node.kwargs().empty() || node.args().empty()) return std::nullopt;
  const bool of_list = node.args().size() == 1 && node.arg(0).is_sequence();
  const bool is_choice = function == kChoice;
  std::vector<SizeExpr> operands;
  for (const Argument& arg : of_list ? node.arg(0).elements() : node.args()) {
    std::optional<SizeExpr> operand = arg.is_int()     ? std::optional(SizeExpr::integer(arg.as_int()))
                                      : arg.is_float() ? std::optional(SizeExpr::real(arg.as_float()))
                                      : arg.is_bool()
                                          ? std::optional(SizeExpr::call(arg.as_bool() ? "true" : "false", {}))
                                      : arg.is_node() ? value_of(arg.node())
                                                      : std::nullopt;
    if (!operand) return std::nullopt;
    operands.push_back(std::move(*operand));
  }
  if (is_choice) {
    if (operands.size() != 3) return std::nullopt;
    return chosen(operands[0], std::move(operands[1]), std::move(operands[2]));
  }
  if (is_of_one(function)) return operands.size() == 1 ? std::optional(of_one(function, operands[0])) : std::nullopt;
  if (operands.size() < 2 || (!of_list && operands.size() > 2)) return std::nullopt;
  std::optional<SizeExpr> made = of_several(function, std::move(operands));
  if (!made || made->varies() || made->is_real() || is_condition(*made)) return made;
  const std::optional<std::int64_t> value = made->evaluate({});
  return value ? std::optional(SizeExpr::integer(*value)) : std::nullopt;
}

namespace {

using List = AbstractValue::List;

AbstractValue slice_of(const List& list, const AbstractValue& start, const AbstractValue& end, std::int64_t step) {
  const auto count = static_cast<std::int64_t>(list.size());
  const std::int64_t first = step < 0 ? -1 : 0, last = count + first;  // where a slice may begin and end
  const auto at = [&](const AbstractValue& value, std::int64_t otherwise) -> std::optional<std::int64_t> {
    if (value.is_none()) return otherwise;
    if (!value.number() || !value.number()->is_integer()) return std::nullopt;
    const std::int64_t place = value.number()->value();
    return std::clamp<std::int64_t>(place < 0 ? place + count : place, first, last);
  };
  const std::optional<std::int64_t> from = at(start, step < 0 ? last : first), to = at(end, step < 0 ? first : last);
  if (!from || !to) return {};
  List part;
  for (std::int64_t i = *from; step < 0 ? i > *to : i < *to; i += step)
    part.push_back(list[static_cast<std::size_t>(i)]);
  return part;
}

std::optional<SizeExpr> equality_of(const List& a, const List& b) {
  if (a.size() != b.size()) return truth(false);
  std::vector<SizeExpr> all;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].number() || !b[i].number()) return std::nullopt;
    const bool is_same = *a[i].number() == *b[i].number();
    all.push_back(is_same ? truth(true) : SizeExpr::call("Equality", {*a[i].number(), *b[i].number()}));
  }
  return joined("And", all);
}

}  // namespace

AbstractValue made_of_lists(std::string_view packet, const List& arguments) {
  const List *list = arguments[0].list(), *other = arguments.size() > 1 ? arguments[1].list() : nullptr;
  if (!list) return {};
  if (packet == "aten::slice" && arguments.size() == 4) {
    const SizeExpr* step = arguments[3].number();
    return step && step->is_integer() && step->value() != 0 ? slice_of(*list, arguments[1], arguments[2], step->value())
                                                            : AbstractValue();
  }
  if (!other) return {};
  if (packet == "aten::add") {
    List both = *list;
    both.insert(both.end(), other->begin(), other->end());
    return both;
  }
  const std::optional<SizeExpr> equal =
      packet == "aten::eq" || packet == "aten::ne" ? equality_of(*list, *other) : std::nullopt;
  return !equal ? AbstractValue() : packet == "aten::eq" ? *equal : negated_truth(*equal);
}

}  // namespace fx
