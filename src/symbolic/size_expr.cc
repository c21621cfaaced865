#include <fxgraph/symbolic/size_expr.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ostream>
#include <utility>

#include <fxgraph/support/error.h>
#include <fxgraph/symbolic/canonical_form.h>
#include <fxgraph/symbolic/floor_divide.h>
#include <fxgraph/symbolic/relations.h>

namespace fx {
namespace {

using Size = std::optional<std::int64_t>;

Size floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
  return internal::floor_divide(a, b);
}
Size modulo(std::int64_t a, std::int64_t b) {
  const Size quotient = floor_divide(a, b);
  return quotient ? Size(a - *quotient * b) : std::nullopt;
}
Size power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
    if (result == 0 || (result == 1 && base == 1)) break;
  }
  return result;
}

struct Function {
  const char* name;
  Size (*apply)(std::int64_t, std::int64_t);
};
const Function kFunctions[] = {
    {"Add",
     [](std::int64_t a, std::int64_t b) -> Size {
       std::int64_t sum = 0;
       return __builtin_add_overflow(a, b, &sum) ? std::nullopt : Size(sum);
     }},
    {"Mul",
     [](std::int64_t a, std::int64_t b) -> Size {
       std::int64_t product = 0;
       return __builtin_mul_overflow(a, b, &product) ? std::nullopt : Size(product);
     }},
    {"FloorDiv", floor_divide},
    {"CleanDiv", floor_divide},
    {"CeilDiv",
     [](std::int64_t a, std::int64_t b) -> Size {
       const Size down = floor_divide(-a, b);
       return down ? Size(-*down) : std::nullopt;
     }},
    {"Mod", modulo},
    {"PythonMod", modulo},
    {"Pow", power},
    {"PowByNatural", power},
    {"Max", [](std::int64_t a, std::int64_t b) -> Size { return std::max(a, b); }},
    {"Min", [](std::int64_t a, std::int64_t b) -> Size { return std::min(a, b); }},
};

const Function* find_function(const std::string& name) {
  for (const Function& each : kFunctions) {
    if (name == each.name) return &each;
  }
  return nullptr;
}

// Of numbers with a point: what makes whole ones of them, and what makes them.
struct Rounding {
  const char* name;
  double (*apply)(double);
};
constexpr Rounding kRoundings[] = {
    {"TruncToInt", [](double x) { return std::trunc(x); }},
    {"FloorToInt", [](double x) { return std::floor(x); }},
    {"CeilToInt", [](double x) { return std::ceil(x); }},
    {"RoundToInt", [](double x) { return std::nearbyint(x); }},
};
struct RealFunction {
  const char* name;
  bool of_any;  ///< of whole numbers, too
  double (*apply)(double, double);
};
constexpr RealFunction kRealFunctions[] = {
    {"ToFloat", true, nullptr},
    {"Add", false, [](double a, double b) { return a + b; }},
    {"Mul", false, [](double a, double b) { return a * b; }},
    {"FloatTrueDiv", true, [](double a, double b) { return a / b; }},
    {"IntTrueDiv", true, [](double a, double b) { return a / b; }},
    {"Max", false, [](double a, double b) { return std::max(a, b); }},
    {"Min", false, [](double a, double b) { return std::min(a, b); }},
    {"FloatPow", true, [](double a, double b) { return std::pow(a, b); }},
    {"OpaqueUnaryFn_sqrt", true, nullptr},
    {"Piecewise", false, nullptr},
    {"ExprCondPair", false, nullptr},
};

constexpr std::string_view kPiecewise = "Piecewise", kPiece = "ExprCondPair", kRoot = "OpaqueUnaryFn_sqrt";

// Of a condition, 1 where it holds, 0 where it does not; nothing where it is none, or not known.
Size holds(const SizeExpr& expr, const std::map<std::string, std::int64_t>& symbols) {
  const std::string& name = expr.name();
  const std::vector<SizeExpr>& operands = expr.operands();
  if (operands.empty()) return name == "true" ? Size(1) : name == "false" ? Size(0) : std::nullopt;
  if (name == "And" || name == "Or" || name == "Not") {
    std::size_t count = 0;
    for (const SizeExpr& operand : operands) {
      const Size each = operand.evaluate(symbols);
      if (!each) return std::nullopt;
      count += *each != 0;
    }
    return name == "And" ? count == operands.size() : name == "Or" ? count > 0 : count == 0;
  }
  const internal::RelationRow* relation = internal::find_relation(name);
  if (!relation || operands.size() != 2) return std::nullopt;
  const auto left = operands[0].evaluate_real(symbols), right = operands[1].evaluate_real(symbols);
  return left && right ? Size(relation->holds(*left, *right)) : std::nullopt;
}

// The value of the first piece whose condition holds; null where that is not known.
const SizeExpr* piece_of(const SizeExpr& expr, const std::map<std::string, std::int64_t>& symbols) {
  for (const SizeExpr& piece : expr.operands()) {
    if (piece.name() != kPiece || piece.operands().size() != 2) return nullptr;
    const Size is_it = piece.operands()[1].evaluate(symbols);
    if (!is_it) return nullptr;
    if (*is_it) return &piece.operands()[0];
  }
  return nullptr;
}

const RealFunction* find_real_function(const std::string& name) {
  const auto found = std::ranges::find(kRealFunctions, name, &RealFunction::name);
  return found == std::end(kRealFunctions) ? nullptr : found;
}

}  // namespace

const SizeExpr::Term& SizeExpr::no_term() {
  static const Term kNone;
  return kNone;
}

/// Of a call whether it is a number with a point.
static bool is_real_call(const std::string& name, const std::vector<SizeExpr>& operands) {
  if (name == kPiece) return !operands.empty() && operands[0].is_real();
  const RealFunction* function = find_real_function(name);
  return function && (function->of_any || std::ranges::any_of(operands, &SizeExpr::is_real));
}

constexpr std::uint32_t kMostParts = 1'000'000;

SizeExpr SizeExpr::make(Kind kind, std::string name, std::vector<SizeExpr> operands, bool is_canonical) {
  SizeExpr made;
  made.kind_ = kind;
  int depth = 0;
  std::uint32_t parts = 1;
  for (const SizeExpr& operand : operands) {
    parts = std::min(kMostParts, parts + operand.parts());
    depth = std::max(depth, operand.depth() + 1);
    is_canonical = is_canonical && operand.is_canonical();
  }
  const bool is_real = kind == Kind::call     ? is_real_call(name, operands)
                       : kind == Kind::symbol ? is_real_symbol(name)
                                              : kind == Kind::real;
  made.term_ =
      std::make_shared<const Term>(Term{std::move(name), std::move(operands), depth, parts, is_real, is_canonical});
  return made;
}
SizeExpr SizeExpr::real(std::string digits) { return make(Kind::real, std::move(digits)); }
SizeExpr SizeExpr::real(double value) {
  constexpr int kDigits = 17;
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, kDigits);
  std::string digits(buffer.data(), end.ptr);
  if (digits.find_first_of(".en") == digits.npos) digits += ".0";
  return real(std::move(digits));
}
SizeExpr SizeExpr::symbol(std::string name) { return make(Kind::symbol, std::move(name), {}, true); }
SizeExpr SizeExpr::call(std::string function, std::vector<SizeExpr> operands) {
  return make(Kind::call, std::move(function), std::move(operands));
}

bool operator==(const SizeExpr& a, const SizeExpr& b) {
  if (a.kind_ != b.kind_ || a.value_ != b.value_) return false;
  return a.term_ == b.term_ || (a.name() == b.name() && a.operands() == b.operands());
}

std::strong_ordering operator<=>(const SizeExpr& a, const SizeExpr& b) {
  if (a.term_ == b.term_ && a.kind_ == b.kind_) return a.value_ <=> b.value_;
  // Symbols before functions before numbers.
  const auto rank = [](const SizeExpr& each) {
    return each.is_symbol() ? 0 : each.kind() == SizeExpr::Kind::call ? 1 : each.is_integer() ? 2 : 3;
  };
  if (rank(a) != rank(b)) return rank(a) <=> rank(b);
  if (a.value_ != b.value_) return a.value_ <=> b.value_;
  if (const auto order = a.name() <=> b.name(); order != 0) return order;
  return a.operands() <=> b.operands();
}

std::ostream& operator<<(std::ostream& out, const SizeExpr& expr) { return out << expr.str(); }

void SizeExpr::for_each_symbol(const std::function<void(const std::string&)>& visit) const {
  if (is_symbol()) visit(name());
  for (const SizeExpr& operand : operands()) operand.for_each_symbol(visit);
}

std::optional<std::int64_t> SizeExpr::evaluate(const std::map<std::string, std::int64_t>& symbols) const {
  if (is_integer()) return value_;
  if (is_symbol()) {
    const auto found = symbols.find(name());
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  }
  if (kind_ == Kind::real) return std::nullopt;
  if (const Size condition = holds(*this, symbols)) return condition;
  if (operands().empty()) return std::nullopt;
  if (name() == kPiecewise) {
    const SizeExpr* piece = piece_of(*this, symbols);
    return piece ? piece->evaluate(symbols) : std::nullopt;
  }
  if (const auto rounding = std::ranges::find(kRoundings, name(), &Rounding::name); rounding != std::end(kRoundings)) {
    const std::optional<double> number = operands()[0].evaluate_real(symbols);
    constexpr double kMost = 0x1p62;
    const bool fits = number && operands().size() == 1 && std::abs(*number) < kMost;
    return fits ? Size(static_cast<std::int64_t>(rounding->apply(*number))) : std::nullopt;
  }
  const Function* function = find_function(name());
  if (!function) return std::nullopt;
  Size result = operands()[0].evaluate(symbols);
  for (std::size_t i = 1; i < operands().size() && result; ++i) {
    const Size next = operands()[i].evaluate(symbols);
    result = next ? function->apply(*result, *next) : std::nullopt;
  }
  return result;
}

bool SizeExpr::varies() const { return is_symbol() || std::ranges::any_of(operands(), &SizeExpr::varies); }

bool SizeExpr::is_of_data() const {
  return is_symbol() ? is_data_symbol(name()) : std::ranges::any_of(operands(), &SizeExpr::is_of_data);
}

std::optional<double> SizeExpr::evaluate_real(const std::map<std::string, std::int64_t>& symbols) const {
  if (!is_real()) {
    const Size whole = evaluate(symbols);
    return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }
  if (kind_ == Kind::real) {
    double value = 0;
    const auto [end, error] = std::from_chars(name().data(), name().data() + name().size(), value);
    return error == std::errc() && end == name().data() + name().size() ? std::optional(value) : std::nullopt;
  }
  if (is_symbol()) return std::nullopt;
  if (name() == kPiecewise) {
    const auto* piece = piece_of(*this, symbols);
    return piece ? piece->evaluate_real(symbols) : std::nullopt;
  }
  const RealFunction& function = *find_real_function(name());
  if (operands().empty() || (!function.apply && operands().size() > 1)) return std::nullopt;
  std::optional<double> result = operands()[0].evaluate_real(symbols);
  for (std::size_t i = 1; i < operands().size() && result; ++i) {
    const std::optional<double> next = operands()[i].evaluate_real(symbols);
    result = next ? std::optional(function.apply(*result, *next)) : std::nullopt;
  }
  if (result && name() == kRoot) result = std::sqrt(*result);
  return result && std::isfinite(*result) ? result : std::nullopt;
}

SizeExpr SizeExpr::simplified() const {
  return is_canonical() ? *this : substituted([](const SizeExpr& symbol) { return symbol; });
}

SizeExpr SizeExpr::substituted(const std::function<SizeExpr(const SizeExpr&)>& value_of) const {
  if (is_symbol()) return value_of(*this);
  if (operands().empty()) return *this;
  std::vector<SizeExpr> of;
  for (const SizeExpr& operand : operands()) of.push_back(operand.substituted(value_of));
  const bool whole = std::ranges::none_of(of, &SizeExpr::is_real);
  const auto folded = [&](SizeExpr (*with)(const SizeExpr&, const SizeExpr&)) {
    SizeExpr result = of[0];
    for (std::size_t i = 1; i < of.size(); ++i) result = with(result, of[i]);
    return result;
  };
  struct Row {
    std::string_view name;
    SizeExpr (*apply)(const SizeExpr&, const SizeExpr&);
  };
  static constexpr Row kRows[] = {{"Add", [](const SizeExpr& a, const SizeExpr& b) { return a + b; }},
                                  {"Mul", [](const SizeExpr& a, const SizeExpr& b) { return a * b; }},
                                  {"FloorDiv", floor_div},
                                  {"CleanDiv", floor_div},
                                  {"CeilDiv", ceil_div},
                                  {"Mod", floor_mod},
                                  {"PythonMod", floor_mod},
                                  {"Max", max},
                                  {"Min", min}};
  const auto row = std::ranges::find(kRows, std::string_view(name()), &Row::name);
  if (whole && row != std::end(kRows)) return folded(row->apply);
  SizeExpr made = call(name(), std::move(of));
  if (whole && (name() == "Pow" || name() == "PowByNatural")) {
    if (const std::optional<SizeExpr> power = CanonicalForm::power(made)) return *power;
  }
  if (made.is_real()) return made;
  const std::optional<std::int64_t> value = made.varies() ? std::nullopt : made.evaluate({});
  return value ? SizeExpr(*value) : made;
}

}  // namespace fx
