// SizeExpr as text: SymPy's, and people's.
#include <algorithm>
#include <charconv>
#include <utility>

#include <fxgraph/support/error.h>
#include <fxgraph/symbolic/size_expr.h>

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

bool is_number(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

struct Infix {
  std::string_view name, between;
  int precedence;
};
constexpr Infix kInfixes[] = {{"Or", " or ", 1},
                              {"And", " and ", 2},
                              {"Equality", " == ", 3},
                              {"Unequality", " != ", 3},
                              {"GreaterThan", " >= ", 3},
                              {"LessThan", " <= ", 3},
                              {"StrictGreaterThan", " > ", 3},
                              {"StrictLessThan", " < ", 3},
                              {"Add", " + ", 4},
                              {"Mul", "*", 5},
                              {"FloorDiv", "//", 5},
                              {"CleanDiv", "//", 5},
                              {"Mod", "%", 5},
                              {"PythonMod", "%", 5},
                              {"Pow", "**", 6},
                              {"PowByNatural", "**", 6}};

void append(std::string& out, const SizeExpr& expr, int outer) {
  if (expr.is_integer()) {
    out += std::to_string(expr.value());
    return;
  }
  const Infix* function = std::ranges::find(kInfixes, expr.name(), &Infix::name);
  const bool infix = function != std::end(kInfixes) && expr.operands().size() > 1;
  if (!infix) out += expr.name();
  if (expr.operands().empty()) return;
  const int precedence = infix ? function->precedence : 0;
  if (!infix || precedence <= outer) out += '(';
  const bool is_sum = infix && expr.name() == "Add";
  const bool negates = infix && expr.name() == "Mul" && expr.operands()[0] == SizeExpr(-1);
  if (negates) out += '-';
  std::vector<std::string> parts;
  for (std::size_t i = negates; i < expr.operands().size(); ++i)
    append(parts.emplace_back(), expr.operands()[i], precedence);
  // What is subtracted stands behind what it is subtracted from.
  if (is_sum && parts[0][0] == '-') {
    const auto first = std::ranges::find_if(parts, [](const std::string& part) { return part[0] != '-'; });
    if (first != parts.end()) std::rotate(parts.begin(), first, first + 1);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool subtracts = is_sum && i > 0 && parts[i][0] == '-';
    if (i > 0) out += subtracts ? " - " : infix ? function->between : ", ";
    out += subtracts ? parts[i].substr(1) : parts[i];
  }
  if (!infix || precedence <= outer) out += ')';
}

}  // namespace

SizeExpr SizeExpr::parse(std::string_view text) { return Parser(text).parse(); }

std::string SizeExpr::dump() const {
  if (is_integer()) return "Integer(" + std::to_string(value_) + ")";
  if (is_symbol() && is_real_symbol(name())) return "Symbol('" + name() + "')";
  if (is_symbol())
    return "Symbol('" + name() + (is_data_symbol(name()) ? "', integer=True)" : "', positive=True, integer=True)");
  if (kind_ == Kind::real) return "Float('" + name() + "', precision=53)";
  if (operands().empty()) return name();  // a constant
  std::string text = name() + "(";
  for (std::size_t i = 0; i < operands().size(); ++i) text += (i > 0 ? ", " : "") + operands()[i].dump();
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

}  // namespace fx
