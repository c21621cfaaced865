// A parser by precedence: every level of Python's operators is a row of kLevels, and one function goes through them.
#include <fxgraph/export/guard_text.h>

#include <cctype>
#include <charconv>
#include <utility>

#include <fxgraph/symbolic/size_expr.h>

namespace fx::pt2 {
namespace {

using Value = std::optional<std::int64_t>;

/// Of SymPy's functions that SizeExpr knows.
Value as_sizes_are(const char* function, std::int64_t a, std::int64_t b) {
  return SizeExpr::call(function, {SizeExpr::integer(a), SizeExpr::integer(b)}).evaluate({});
}

struct GuardOperator {
  const char* text;
  const char* target;  ///< what computes it here
  int level;           ///< the higher, the tighter
  Value (*compute)(std::int64_t a, std::int64_t b);
};
constexpr GuardOperator kGuardOperators[] = {
    {"or", "aten::__or__.bool", 0, [](auto a, auto b) { return Value(a || b); }},
    {"and", "aten::__and__.bool", 1, [](auto a, auto b) { return Value(a && b); }},
    {"==", "aten::eq.int", 3, [](auto a, auto b) { return Value(a == b); }},
    {"!=", "aten::ne.int", 3, [](auto a, auto b) { return Value(a != b); }},
    {"<=", "aten::le.int", 3, [](auto a, auto b) { return Value(a <= b); }},
    {">=", "aten::ge.int", 3, [](auto a, auto b) { return Value(a >= b); }},
    {"<", "aten::lt.int", 3, [](auto a, auto b) { return Value(a < b); }},
    {">", "aten::gt.int", 3, [](auto a, auto b) { return Value(a > b); }},
    {"+", "aten::add.int", 4, [](auto a, auto b) { return as_sizes_are("Add", a, b); }},
    {"-", "aten::sub.int", 4, [](auto a, auto b) { return b == INT64_MIN ? Value() : as_sizes_are("Add", a, -b); }},
    {"//", "aten::floordiv.int", 5, [](auto a, auto b) { return as_sizes_are("FloorDiv", a, b); }},
    {"*", "aten::mul.int", 5, [](auto a, auto b) { return as_sizes_are("Mul", a, b); }},
    {"%", "aten::remainder.int", 5, [](auto a, auto b) { return as_sizes_are("PythonMod", a, b); }},
    {"not", "aten::__not__", 7, [](auto a, auto) { return Value(!a); }},
    {"neg", "aten::neg.int", 7, [](auto a, auto) { return as_sizes_are("Mul", a, -1); }},
    {"torch.sym_min", "prim::min.int", 8, [](auto a, auto b) { return Value(a < b ? a : b); }},
    {"torch.sym_max", "prim::max.int", 8, [](auto a, auto b) { return Value(a < b ? b : a); }},
};
constexpr int kComparison = 3;
constexpr int kNot = 2;
constexpr int kProduct = 5;
constexpr int kLevelsOfTwo = 6;  // levels 0 to 5 have two operands

const GuardOperator* find_guard_operator(std::string_view text) {
  for (const GuardOperator& row : kGuardOperators) {
    if (text == row.text) return &row;
  }
  return nullptr;
}

/// Thrown within this file for a text that is not read here.
struct Unread {};

class GuardParser {
 public:
  GuardParser(std::string_view text, const GuardPath& leaf_of) : text_(text), leaf_of_(leaf_of) {}

  Guard parse() {
    Guard whole = level(0, 0);
    skip();
    if (at_ != text_.size()) throw Unread();
    return whole;
  }

 private:
  // Operators of this level, from left to right; `not` stands between `and` and comparisons.
  Guard level(int wanted, int depth) {
    if (depth > Guard::kDeepest) throw Unread();
    if (wanted == kNot) return take_word("not") ? call("not", {level(kNot, depth + 1)}) : level(kComparison, depth);
    if (wanted == kLevelsOfTwo) return unary(depth);
    Guard left = level(wanted + 1, depth);
    while (const GuardOperator* op = take_operator(wanted)) {
      left = call(op->text, {std::move(left), level(wanted + 1, depth + 1)});
      if (wanted == kComparison) break;  // a < b < c means something else
    }
    return left;
  }

  Guard unary(int depth) {
    if (depth > Guard::kDeepest) throw Unread();
    if (take("-")) return call("neg", {unary(depth + 1)});
    if (take("(")) {
      Guard inner = level(0, depth + 1);
      require(")");
      return inner;
    }
    for (const char* function : {"torch.sym_min", "torch.sym_max"}) {
      if (!take(function)) continue;
      require("(");
      Guard left = level(0, depth + 1);
      require(",");
      Guard right = level(0, depth + 1);
      require(")");
      return call(function, {std::move(left), std::move(right)});
    }
    if (take("L")) return input();
    return {"number", number()};
  }

  Guard input() {
    std::vector<GuardStep> path;
    while (take("[")) {
      path.push_back(step());
      require("]");
    }
    const std::optional<std::size_t> leaf = leaf_of_(path);
    if (!leaf) throw Unread();
    for (const char* question : {"size", "stride"}) {
      if (!take("." + std::string(question) + "()[")) continue;
      Guard asked{question, number(), *leaf};
      require("]");
      return asked;
    }
    if (take(".")) throw Unread();
    return {"value", 0, *leaf};
  }

  GuardStep step() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return {"", number()};
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw Unread();
    GuardStep found{std::string(text_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return found;
  }

  std::int64_t number() {
    skip();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) throw Unread();
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e')) throw Unread();
    return value;
  }

  static Guard call(std::string kind, std::vector<Guard> operands) {
    Guard made{std::move(kind)};
    made.operands = std::move(operands);
    return made;
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
  void require(std::string_view token) {
    if (!take(token)) throw Unread();
  }
  const GuardOperator* take_operator(int wanted) {
    skip();
    if (wanted == kProduct && text_.substr(at_).starts_with("**")) throw Unread();
    for (const GuardOperator& row : kGuardOperators) {
      if (row.level != wanted) continue;
      if (std::isalpha(static_cast<unsigned char>(row.text[0])) ? take_word(row.text) : take(row.text)) return &row;
    }
    return nullptr;
  }

  std::string_view text_;
  const GuardPath& leaf_of_;
  std::size_t at_ = 0;
};

bool is_input(const Guard& guard) { return guard.kind == "value" || guard.kind == "size" || guard.kind == "stride"; }

}  // namespace

std::optional<Guard> parse_guard(std::string_view text, const GuardPath& leaf_of) {
  if (text.size() > Guard::kLongest) return std::nullopt;
  try {
    return GuardParser(text, leaf_of).parse();
  } catch (const Unread&) {
    return std::nullopt;
  }
}

std::string guard_text(const Guard& guard) {
  if (guard.kind == "number") return std::to_string(guard.number);
  if (is_input(guard)) {
    const std::string leaf = "L['flat_args'][" + std::to_string(guard.leaf) + "]";
    return guard.kind == "value" ? leaf : leaf + "." + guard.kind + "()[" + std::to_string(guard.number) + "]";
  }
  const std::string first = guard_text(guard.operands[0]);
  if (guard.kind == "neg") return "(-" + first + ")";
  if (guard.kind == "not") return "(not " + first + ")";
  const std::string second = guard_text(guard.operands[1]);
  if (guard.kind.starts_with("torch.")) return guard.kind + "(" + first + ", " + second + ")";
  return "(" + first + " " + guard.kind + " " + second + ")";
}

std::optional<std::int64_t> evaluate_guard(
    const Guard& guard, const std::function<std::optional<std::int64_t>(const Guard& asked)>& input) {
  if (guard.kind == "number") return guard.number;
  if (is_input(guard)) return input(guard);
  std::vector<std::int64_t> values;
  for (const Guard& operand : guard.operands) {
    const std::optional<std::int64_t> value = evaluate_guard(operand, input);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  const GuardOperator* op = find_guard_operator(guard.kind);
  return op ? op->compute(values[0], values.size() > 1 ? values[1] : 0) : std::nullopt;
}

Node* add_guard(Graph& graph, const Guard& guard, const std::function<Node*(const Guard& asked)>& input) {
  if (is_input(guard)) {
    Node* asked = input(guard);
    if (!asked || guard.kind == "value") return asked;
    return &graph.call_function(guard.kind == "size" ? "aten::size.int" : "aten::stride.int", {*asked, guard.number});
  }
  const GuardOperator* op = find_guard_operator(guard.kind);
  if (!op) return nullptr;
  std::vector<Argument> args;
  for (const Guard& operand : guard.operands) {
    if (operand.kind == "number") {
      args.push_back(operand.number);
    } else if (Node* node = add_guard(graph, operand, input)) {
      args.push_back(*node);
    } else {
      return nullptr;
    }
  }
  return &graph.call_function(Symbol(op->target), args);
}

}  // namespace fx::pt2
