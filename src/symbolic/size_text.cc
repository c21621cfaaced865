// SizeExpr as text: SymPy's, and people's.
//
// People's is read by precedence: every level of Python's operators is one of kOperators, and one function goes through
// them.
#include <fxgraph/symbolic/size_text.h>

#include <algorithm>
#include <charconv>
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

constexpr int kNegation = 2, kFactor = 5;  // `not` binds as `and` does

void append(std::string& out, const SizeExpr& expr, int outer) {
  if (expr.is_integer()) {
    const std::string number = std::to_string(expr.value());
    out += expr.value() < 0 && outer >= kFactor ? "(" + number + ")" : number;
    return;
  }
  const Infix* function = std::ranges::find(kInfixes, expr.name(), &Infix::name);
  const bool infix = function != std::end(kInfixes) && expr.operands().size() > 1;
  if (expr.is_call("Not") && expr.operands().size() == 1) {
    out += outer > kNegation ? "(not " : "not ";
    append(out, expr.operands()[0], kNegation);
    out += outer > kNegation ? ")" : "";
    return;
  }
  if (!infix) out += expr.name();
  if (expr.operands().empty()) return;
  const int precedence = infix ? function->precedence : 0;
  if (!infix || precedence <= outer) out += '(';
  const bool is_sum = infix && expr.name() == "Add";
  const std::int64_t factor = infix && expr.name() == "Mul" ? expr.operands()[0].value() : 0;
  const bool negates = factor < 0 && factor != INT64_MIN;
  if (negates) out += factor == -1 ? "-" : "-" + std::to_string(-factor) + "*";
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

/// Of two operands, from the left to the right.
struct Operator {
  std::string_view text;
  const char* function;
  int level;  // the higher, the tighter
};
constexpr Operator kOperators[] = {
    {"or", "Or", 0},       {"and", "And", 1},        {"==", "Equality", 3},      {"!=", "Unequality", 3},
    {"<=", "LessThan", 3}, {">=", "GreaterThan", 3}, {"<", "StrictLessThan", 3}, {">", "StrictGreaterThan", 3},
    {"+", "Add", 4},       {"-", "Add", 4},          {"//", "FloorDiv", 5},      {"*", "Mul", 5},
    {"%", "PythonMod", 5}};
constexpr int kNot = 2, kComparison = 3, kProduct = 5;

struct ReadFunction {
  std::string_view text;
  const char* function;
};
constexpr ReadFunction kReadFunctions[] = {{"min(", "Min"}, {"max(", "Max"},           {"Min(", "Min"},
                                           {"Max(", "Max"}, {"torch.sym_min(", "Min"}, {"torch.sym_max(", "Max"}};

class SizeReader {
 public:
  SizeReader(std::string_view text, const NameReader& name, std::size_t from) : text_(text), name_(name), at_(from) {}

  SizeExpr read() {
    if (text_.size() > kLongestSizeText) fail("a shorter text");
    SizeExpr whole = level(0, 0);
    skip();
    if (at_ != text_.size()) fail("an operator");
    return whole;
  }

 private:
  [[noreturn]] void fail(const std::string& wanted) const {
    throw Error(ErrorKind::invalid_argument, wanted + " is missing at column " + std::to_string(at_ + 1));
  }

  SizeExpr level(int wanted, int depth) {
    if (depth > SizeExpr::kMaxDepth) fail("an expression with fewer brackets");
    if (wanted == kNot)
      return take_word("not") ? SizeExpr::call("Not", {level(kNot, depth + 1)}) : level(kComparison, depth);
    if (wanted > kProduct) return unary(depth);
    // One sum, product or chain of conditions is one call, however long it is.
    std::vector<SizeExpr> terms = {level(wanted + 1, depth)};
    std::string_view function;
    const auto join = [&] {
      if (terms.size() > 1) terms = {SizeExpr::call(std::string(function), std::move(terms))};
      if (terms[0].depth() > SizeExpr::kMaxDepth) fail("a shorter expression");
    };
    while (const Operator* found = take_operator(wanted)) {
      SizeExpr right = level(wanted + 1, depth + 1);
      if (found->function != function || function == "FloorDiv" || function == "PythonMod") join();
      function = found->function;
      terms.push_back(found->text == "-" ? SizeExpr::call("Mul", {-1, std::move(right)}) : std::move(right));
      if (wanted == kComparison) break;  // a < b < c means something else
    }
    join();
    return std::move(terms[0]);
  }

  SizeExpr unary(int depth) {
    if (depth > SizeExpr::kMaxDepth) fail("an expression with fewer brackets");
    if (take("-")) return SizeExpr::call("Mul", {-1, unary(depth + 1)});
    if (take("(")) return closed(level(0, depth + 1));
    for (const ReadFunction& row : kReadFunctions) {
      if (!take(row.text)) continue;
      std::vector<SizeExpr> operands = {level(0, depth + 1)};
      while (take(",")) operands.push_back(level(0, depth + 1));
      if (operands.size() < 2) fail("','");
      return closed(SizeExpr::call(row.function, std::move(operands)));
    }
    if (std::optional<NameInText> name = name_(text_.substr(at_))) {
      at_ += name->length;
      return std::move(name->size);
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail("a number or a name");
    if (text_[at_] == '0' && end - text_.data() > static_cast<std::ptrdiff_t>(at_ + 1))
      fail("a number without zeros before it");
    const std::size_t behind = static_cast<std::size_t>(end - text_.data());
    if (behind < text_.size() && (text_[behind] == '.' || std::isalnum(static_cast<unsigned char>(text_[behind]))))
      fail("a whole number");
    at_ = behind;
    return value;
  }
  SizeExpr closed(SizeExpr inside) {
    if (!take(")")) fail("')'");
    return inside;
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool take_word(std::string_view word) {
    skip();
    const std::string_view rest = text_.substr(at_);
    const bool ends = rest.size() <= word.size() || !std::isalnum(static_cast<unsigned char>(rest[word.size()]));
    return ends && take(word);
  }
  const Operator* take_operator(int wanted) {
    skip();
    if (wanted == kProduct && text_.substr(at_).starts_with("**")) fail("an operator");
    for (const Operator& row : kOperators) {
      const bool is_word = std::isalpha(static_cast<unsigned char>(row.text[0]));
      if (row.level == wanted && (is_word ? take_word(row.text) : take(row.text))) return &row;
    }
    return nullptr;
  }

  std::string_view text_;
  const NameReader& name_;
  std::size_t at_;
};

}  // namespace

SizeExpr read_size(std::string_view text, const NameReader& name, std::size_t from) {
  return SizeReader(text, name, from).read();
}

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
