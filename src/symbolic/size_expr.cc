#include <fxgraph/symbolic/size_expr.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fxgraph/support/error.h>

namespace fx {
namespace {

bool is_digit(unsigned char c) { return std::isdigit(c); }
// Reads `Name(operand, operand, key=value)`.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  SizeExpr parse() {
    SizeExpr made = expression(0);
    skip_spaces();
    if (at_ != text_.size()) fail();
    return made;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorKind::io, "is malformed: the size '" + std::string(text_.substr(0, 80)) +
                                   "' is no expression; export the program again");
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char wanted) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    skip_spaces();
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return text_.substr(start, at_ - start);
  }
  std::int64_t number() {
    skip_spaces();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  std::string quoted() {
    if (!take('\'')) fail();
    const std::size_t start = at_;
    const std::size_t end = text_.find('\'', start);
    if (end == std::string_view::npos) fail();
    at_ = end + 1;
    return std::string(text_.substr(start, end - start));
  }
  // `, positive=True, integer=True)`: what SymPy knows of a symbol, or of a number's precision.
  void skip_assumptions() {
    while (take(',')) {
      if (word().empty() || !take('=') || word().empty()) fail();
    }
    if (!take(')')) fail();
  }

  SizeExpr expression(int depth) {
    if (depth > SizeExpr::kMaxDepth || ++terms_ > SizeExpr::kMaxTerms) fail();
    skip_spaces();
    if (at_ < text_.size() && (text_[at_] == '-' || is_digit(text_[at_]))) return SizeExpr::integer(number());
    const std::string name(word());
    if (name.empty()) fail();
    if (!take('(')) return SizeExpr::call(name, {});  // a constant: oo, int_oo, true
    if (name == "Symbol") {
      std::string symbol = quoted();
      skip_assumptions();
      return SizeExpr::symbol(std::move(symbol));
    }
    if (name == "Float") {
      std::string digits = quoted();
      skip_assumptions();
      return SizeExpr::real(std::move(digits));
    }
    if (name == "Integer") {
      const std::int64_t value = number();
      if (!take(')')) fail();
      return SizeExpr::integer(value);
    }
    std::vector<SizeExpr> operands;
    if (take(')')) return SizeExpr::call(name, {});
    do operands.push_back(expression(depth + 1));
    while (take(','));
    if (!take(')')) fail();
    return SizeExpr::call(name, std::move(operands));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int terms_ = 0;
};

using Size = std::optional<std::int64_t>;

Size floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
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
  const char* infix;  ///< null: written as a call
  int precedence;     ///< of the infix
  Size (*apply)(std::int64_t, std::int64_t);
};
const Function kFunctions[] = {
    {"Add", " + ", 1,
     [](std::int64_t a, std::int64_t b) -> Size {
       std::int64_t sum = 0;
       return __builtin_add_overflow(a, b, &sum) ? std::nullopt : Size(sum);
     }},
    {"Mul", "*", 2,
     [](std::int64_t a, std::int64_t b) -> Size {
       std::int64_t product = 0;
       return __builtin_mul_overflow(a, b, &product) ? std::nullopt : Size(product);
     }},
    {"FloorDiv", "//", 2, floor_divide},
    {"CleanDiv", "//", 2, floor_divide},
    {"CeilDiv", nullptr, 0,
     [](std::int64_t a, std::int64_t b) -> Size {
       const Size down = floor_divide(-a, b);
       return down ? Size(-*down) : std::nullopt;
     }},
    {"Mod", "%", 2, modulo},
    {"PythonMod", "%", 2, modulo},
    {"Pow", "**", 3, power},
    {"PowByNatural", "**", 3, power},
    {"Max", nullptr, 0, [](std::int64_t a, std::int64_t b) -> Size { return std::max(a, b); }},
    {"Min", nullptr, 0, [](std::int64_t a, std::int64_t b) -> Size { return std::min(a, b); }},
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

// What holds is 1, what does not is 0.
struct Relation {
  const char* name;
  bool (*holds)(double, double);
};
constexpr Relation kRelations[] = {
    {"GreaterThan", [](double a, double b) { return a >= b; }},
    {"LessThan", [](double a, double b) { return a <= b; }},
    {"StrictGreaterThan", [](double a, double b) { return a > b; }},
    {"StrictLessThan", [](double a, double b) { return a < b; }},
    {"Equality", [](double a, double b) { return a == b; }},
    {"Unequality", [](double a, double b) { return a != b; }},
};
constexpr std::string_view kPiecewise = "Piecewise", kPiece = "ExprCondPair", kRoot = "OpaqueUnaryFn_sqrt";

// Of a condition; nothing where it is none, or not known.
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
  const auto relation = std::ranges::find(kRelations, name, &Relation::name);
  if (relation == std::end(kRelations) || operands.size() != 2) return std::nullopt;
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

bool is_number(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

void append(std::string& out, const SizeExpr& expr, int outer) {
  if (expr.is_integer()) {
    out += std::to_string(expr.value());
    return;
  }
  const Function* function = expr.kind() == SizeExpr::Kind::call ? find_function(expr.name()) : nullptr;
  const bool infix = function && function->infix && expr.operands().size() > 1;
  if (!infix) out += expr.name();
  if (expr.operands().empty()) return;
  const int precedence = infix ? function->precedence : 0;
  if (!infix || precedence <= outer) out += '(';
  for (std::size_t i = 0; i < expr.operands().size(); ++i) {
    if (i > 0) out += infix ? function->infix : ", ";
    append(out, expr.operands()[i], precedence);
  }
  if (!infix || precedence <= outer) out += ')';
}

}  // namespace

SizeExpr SizeExpr::integer(std::int64_t value) {
  SizeExpr made;
  made.value_ = value;
  return made;
}
SizeExpr SizeExpr::real(std::string digits) {
  SizeExpr made;
  made.kind_ = Kind::real;
  made.name_ = std::move(digits);
  return made;
}
SizeExpr SizeExpr::real(double value) {
  constexpr int kDigits = 17;
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, kDigits);
  std::string digits(buffer.data(), end.ptr);
  if (digits.find_first_of(".en") == digits.npos) digits += ".0";
  return real(std::move(digits));
}
SizeExpr SizeExpr::symbol(std::string name) {
  SizeExpr made;
  made.kind_ = Kind::symbol;
  made.name_ = std::move(name);
  return made;
}
SizeExpr SizeExpr::call(std::string function, std::vector<SizeExpr> operands) {
  SizeExpr made;
  made.kind_ = Kind::call;
  made.name_ = std::move(function);
  made.operands_ = std::move(operands);
  return made;
}

SizeExpr SizeExpr::parse(std::string_view text) { return Parser(text).parse(); }

std::string SizeExpr::dump() const {
  if (is_integer()) return "Integer(" + std::to_string(value_) + ")";
  if (is_symbol() && is_real_symbol(name_)) return "Symbol('" + name_ + "')";
  if (is_symbol())
    return "Symbol('" + name_ + (is_data_symbol(name_) ? "', integer=True)" : "', positive=True, integer=True)");
  if (kind_ == Kind::real) return "Float('" + name_ + "', precision=53)";
  if (operands_.empty()) return name_;  // a constant
  std::string text = name_ + "(";
  for (std::size_t i = 0; i < operands_.size(); ++i) text += (i > 0 ? ", " : "") + operands_[i].dump();
  return text + ")";
}

bool SizeExpr::is_data_symbol(std::string_view name) {
  return is_real_symbol(name) || (name.starts_with("u") && is_number(name.substr(1)));
}

bool SizeExpr::is_real_symbol(std::string_view name) {
  constexpr std::string_view kStem = "zuf";
  return name.starts_with(kStem) && is_number(name.substr(kStem.size()));
}

std::string SizeExpr::str() const {
  std::string text;
  append(text, *this, 0);
  return text;
}

void SizeExpr::for_each_symbol(const std::function<void(const std::string&)>& visit) const {
  if (is_symbol()) visit(name_);
  for (const SizeExpr& operand : operands_) operand.for_each_symbol(visit);
}

std::optional<std::int64_t> SizeExpr::evaluate(const std::map<std::string, std::int64_t>& symbols) const {
  if (is_integer()) return value_;
  if (is_symbol()) {
    const auto found = symbols.find(name_);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  }
  if (kind_ == Kind::real) return std::nullopt;
  if (const Size condition = holds(*this, symbols)) return condition;
  if (operands_.empty()) return std::nullopt;
  if (name_ == kPiecewise) {
    const SizeExpr* piece = piece_of(*this, symbols);
    return piece ? piece->evaluate(symbols) : std::nullopt;
  }
  if (const auto rounding = std::ranges::find(kRoundings, name_, &Rounding::name); rounding != std::end(kRoundings)) {
    const std::optional<double> number = operands_[0].evaluate_real(symbols);
    constexpr double kMost = 0x1p62;
    const bool fits = number && operands_.size() == 1 && std::abs(*number) < kMost;
    return fits ? Size(static_cast<std::int64_t>(rounding->apply(*number))) : std::nullopt;
  }
  const Function* function = find_function(name_);
  if (!function) return std::nullopt;
  Size result = operands_[0].evaluate(symbols);
  for (std::size_t i = 1; i < operands_.size() && result; ++i) {
    const Size next = operands_[i].evaluate(symbols);
    result = next ? function->apply(*result, *next) : std::nullopt;
  }
  return result;
}

bool SizeExpr::is_real() const {
  if (kind_ != Kind::call) return kind_ == Kind::real || (is_symbol() && is_real_symbol(name_));
  if (name_ == kPiece) return !operands_.empty() && operands_[0].is_real();
  const RealFunction* function = find_real_function(name_);
  return function && (function->of_any || std::ranges::any_of(operands_, &SizeExpr::is_real));
}

std::optional<double> SizeExpr::evaluate_real(const std::map<std::string, std::int64_t>& symbols) const {
  if (!is_real()) {
    const Size whole = evaluate(symbols);
    return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }
  if (kind_ == Kind::real) {
    double value = 0;
    const auto [end, error] = std::from_chars(name_.data(), name_.data() + name_.size(), value);
    return error == std::errc() && end == name_.data() + name_.size() ? std::optional(value) : std::nullopt;
  }
  if (is_symbol()) return std::nullopt;
  if (name_ == kPiecewise) {
    const auto* piece = piece_of(*this, symbols);
    return piece ? piece->evaluate_real(symbols) : std::nullopt;
  }
  const RealFunction& function = *find_real_function(name_);
  if (operands_.empty() || (!function.apply && operands_.size() > 1)) return std::nullopt;
  std::optional<double> result = operands_[0].evaluate_real(symbols);
  for (std::size_t i = 1; i < operands_.size() && result; ++i) {
    const std::optional<double> next = operands_[i].evaluate_real(symbols);
    result = next ? std::optional(function.apply(*result, *next)) : std::nullopt;
  }
  if (result && name_ == kRoot) result = std::sqrt(*result);
  return result && std::isfinite(*result) ? result : std::nullopt;
}

}  // namespace fx
