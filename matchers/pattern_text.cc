// The text of patterns: statements and expressions.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/pattern_parser.h>
#include <fxgraph/matchers/tensor_text.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/syntax.h>

namespace fx::internal {

namespace {

using match::Expr;

/// Words that stand for one kind of value, `c: float`.
struct KindWord {
  std::string_view word;
  Expr (*make)(std::string_view name);
};

constexpr std::array kKindWords = {
    KindWord{"any", match::any},        KindWord{"node", match::value},        KindWord{"literal", match::lit_any},
    KindWord{"int", match::lit_int},    KindWord{"float", match::lit_float},   KindWord{"bool", match::lit_bool},
    KindWord{"str", match::lit_string}, KindWord{"constant", match::constant},
};

/// Words that stand for something even before arguments.
constexpr std::array<std::string_view, 9> kFixedWords = {"None", "True",        "False",       "inf",          "nan",
                                                         "_",    "call_module", "call_method", "call_function"};

/// Words with arguments of their own, and what opens those.
struct Construct {
  std::string_view word;
  std::string_view open;
};

constexpr std::array kConstructs = {
    Construct{"maybe", "("},     Construct{"commutative", "("}, Construct{"lit", "("},       Construct{"near", "("},
    Construct{"dominates", "("}, Construct{"repeat", "("},      Construct{"unordered", "["}, Construct{"spelt", "("},
};

const Construct* find_construct(std::string_view word) {
  const auto found = std::ranges::find(kConstructs, word, &Construct::word);
  return found == kConstructs.end() ? nullptr : found;
}

/// The dtype, layout or memory format that a word such as `torch.float16` names, or nothing.
std::optional<Argument> tensor_option(std::string_view word) {
  Argument value;
  if (!word.starts_with("torch.") || !read_literal(word, value)) return std::nullopt;
  const bool option = value.kind() == ArgumentKind::dtype || value.kind() == ArgumentKind::layout ||
                      value.kind() == ArgumentKind::memory_format;
  return option ? std::optional(value) : std::nullopt;
}

/// `float16`, `channels_last`: without `torch.` in front they would be wildcards. Kinds of literals and Python's other
/// names for dtypes, `half`, are not.
bool is_name_of_option(std::string_view word) {
  const std::optional<DType> dtype = parse_dtype(word);
  return dtype ? to_string(*dtype) == word && word != "bool" : tensor_option("torch." + std::string(word)).has_value();
}

/// Words that stand for something, wherever a name could.
bool is_taken(std::string_view word) {
  return (std::ranges::find(kFixedWords, word) != kFixedWords.end() && word != "_") || word == "return" ||
         word == "get_attr" || std::ranges::find(kKindWords, word, &KindWord::word) != kKindWords.end();
}

}  // namespace

bool PatternParser::reads_as_target(std::string_view word, bool has_arguments) {
  if (!PatternLexer::is_one_word(word) || PatternLexer::without_modifiers(word) != word) return false;
  if (!has_arguments) return word.find("::") != std::string_view::npos;
  const Construct* construct = find_construct(word);
  return std::ranges::find(kFixedWords, word) == kFixedWords.end() && !(construct && construct->open == "(") &&
         std::ranges::find(standard_formulas(), word, &Formula::name) == standard_formulas().end();
}

std::vector<Expr> PatternParser::parse() {
  std::vector<Expr> results;
  skip_newlines();
  while (results.empty()) {
    if (lexer_.is_word("return")) {
      lexer_.take();
      results = list_until_line_ends();
    } else if (lexer_.is_word("let") && std::isalpha(static_cast<unsigned char>(lexer_.next_character()))) {
      let();
    } else if (lexer_.peek().kind == Kind::word && lexer_.next_character() == '=' && !lexer_.is_word("_")) {
      statement();
    } else {
      results = list_until_line_ends();
    }
    skip_newlines();
  }
  if (lexer_.peek().kind != Kind::end) lexer_.fail("the end: a pattern ends with what it returns");
  check_statements();
  return results;
}

/// What nothing names would vanish, and with it what it does: only a graph has an order in which to do it.
void PatternParser::check_statements() {
  for (const PatternToken& statement : statements_) {
    const std::string name(value_name(statement));
    if (!named_.contains(value_name(statement)))
      lexer_.fail_at(statement.at, "nothing uses " + name + ": return it, remove it, or write `graph(): ...` where " +
                                       name + " is there for what it does");
  }
}

void PatternParser::skip_newlines() {
  while (lexer_.peek().kind == Kind::newline) lexer_.take();
}

void PatternParser::statement() {
  const PatternToken name = lexer_.take();
  const std::string_view text = value_name(name);
  if (named_.contains(text) && !bound_.contains(text))
    lexer_.fail_at(name.at, "the name " + std::string(text) + " is used above its line; move the line up");
  statements_.push_back(name);
  lexer_.expect("=");
  if (!bound_.emplace(text, expression().name(text)).second)
    lexer_.fail_at(name.at, "the name " + std::string(text) + " is bound twice");
  if (lexer_.peek().kind != Kind::newline) lexer_.fail("the end of the line");
}

std::vector<Expr> PatternParser::list_until_line_ends() {
  std::vector<Expr> list = {expression()};
  while (lexer_.accept(",")) list.push_back(expression());
  if (lexer_.peek().kind != Kind::newline && lexer_.peek().kind != Kind::end) lexer_.fail("',' or the end of the line");
  return list;
}

Expr PatternParser::expression() {
  if (++depth_ > 200) lexer_.fail_at(lexer_.peek().at, "the pattern nests too deep; name its parts");
  std::vector<Expr> alternatives = {primary()};
  while (lexer_.accept("|")) alternatives.push_back(primary());
  --depth_;
  return alternatives.size() == 1 ? alternatives[0] : match::any_of(alternatives);
}

Expr PatternParser::primary() {
  const PatternToken& token = lexer_.peek();
  switch (token.kind) {
    case Kind::number:
    case Kind::string: return modified(literal(lexer_.take().text));
    case Kind::regex: return call(Op::call_function, regex());
    case Kind::word: return word();
    default: break;
  }
  if (++depth_ > 200) lexer_.fail_at(lexer_.peek().at, "the pattern nests too deep; name its parts");
  const auto nested = [&](const Expr& expr) {
    --depth_;
    return expr;
  };
  if (lexer_.accept("(")) {
    Expr inner = expression();
    lexer_.expect(")");
    return nested(modified(inner));
  }
  if (lexer_.accept("!")) return nested(match::not_(primary()));
  if (lexer_.accept("~")) return nested(match::transparent(primary()));
  if (lexer_.accept("[")) return nested(modified(match::list(elements("]"))));
  if (lexer_.accept("#")) return nested(tagged());
  if (lexer_.accept("{")) return nested(call(Op::call_function, target_set()));
  lexer_.fail("a value");
}

// A word is a keyword, an operator (it has `::`, or arguments follow), a name with a kind after it, or a name.
Expr PatternParser::word() {
  lexer_.cut_modifiers();
  const PatternToken token = lexer_.take();
  const std::string_view text = token.text;
  if (lexer_.accept(":")) return described().name(value_name(token));
  if (text == "None") return modified(Expr(Argument()));
  if (text == "True" || text == "False") return modified(Expr(text == "True"));
  if (text == "inf" || text == "nan") return modified(literal(text));
  if (text == "_") return modified(match::_);
  if (text == "call_module" || text == "call_method" || text == "call_function") return spelled_call(text);
  if (text == "get_attr" && lexer_.is("[")) return modified(match::parameter({}, bracketed('[', ']')));
  if ((text == "device" || text == "torch.device") && lexer_.accept("("))
    return modified(literal("device(" + std::string(lexer_.take_balanced()) + ")"));
  const bool has_arguments = lexer_.is("(");
  if (const Formula* formula = has_arguments ? find_formula(text) : nullptr) return modified(use(*formula, token.at));
  if (const Construct* known = find_construct(text); known && lexer_.accept(known->open)) return construct(text);
  if (has_arguments || text.find("::") != std::string_view::npos) return call(Op::call_function, TargetSet(text));
  if (text == "get_attr") return modified(match::parameter());
  for (const KindWord& kind : kKindWords) {
    if (kind.word == text) return modified(kind.make({}));
  }
  if (const std::optional<Argument> option = tensor_option(text)) return modified(Expr(*option));
  if (is_name_of_option(text))
    lexer_.fail_at(token.at, std::string(text) + " is the name of a literal; write torch." + std::string(text));
  const std::string_view name = text.starts_with('%') ? text.substr(1) : text;
  const auto known = bound_.find(name);
  named_.insert(name);
  return modified(known != bound_.end() ? known->second : match::any(value_name(token)));
}

/// `#view`, where modifiers may be part of the word.
Expr PatternParser::tagged() {
  lexer_.cut_modifiers();
  const TargetSet targets(tag(lexer_.peek().text));
  lexer_.take();
  return call(Op::call_function, targets);
}

/// What stands after `name:`; a type of tensor, `f32[N, C]`, means a node of that type.
Expr PatternParser::described() {
  if (!is_tensor_type(lexer_)) return primary();
  ExprNode node = PatternAccess::of(match::value());
  read_tensor_type(lexer_, node);
  return modified(PatternAccess::make(std::move(node)));
}

/// A word with an argument list of its own; its opening bracket is taken.
Expr PatternParser::construct(std::string_view word) {
  if (word == "lit") return modified(literal(lexer_.take_balanced()));
  if (word == "near") return modified(near());
  if (word == "spelt") return call(Op::call_function, spelling());
  if (word == "unordered") return modified(match::unordered(elements("]")));
  Expr made = word == "commutative" ? commutative()
              : word == "dominates" ? dominates()
              : word == "repeat"    ? repeat()
                                    : match::maybe(expression());
  lexer_.expect(")");
  return modified(made);
}

Expr PatternParser::dominates() {
  Expr parent = expression();
  lexer_.expect(",");
  return match::dominates(std::move(parent), expression());
}

Expr PatternParser::repeat() {
  const std::size_t at = lexer_.peek().at;
  Expr step = expression();
  lexer_.expect(",");
  const std::uint32_t low = count();
  lexer_.expect(",");
  const std::uint32_t high = count();
  lexer_.expect(",");
  Expr from = expression();
  try {
    return match::repeat(step, low, high, from);
  } catch (const Error& error) {
    lexer_.fail_at(at, error.message());
  }
}

Expr PatternParser::commutative() {
  const std::size_t at = lexer_.peek().at;
  ExprNode node = PatternAccess::of(expression());
  if (node.kind != PatternKind::call || node.args.size() < 2)
    lexer_.fail_at(at, "commutative(…) holds a call with two operands");
  node.commutative = true;
  return PatternAccess::make(std::move(node));
}

Expr PatternParser::near() {
  const Expr value = literal(lexer_.take().text);
  lexer_.expect(",");
  const std::string tolerance(lexer_.take().text);
  lexer_.expect(")");
  return value.within(std::strtod(tolerance.c_str(), nullptr));
}

/// Literals are FX text: the graph parser reads them.
Expr PatternParser::literal(std::string_view text) {
  const std::size_t at = lexer_.peek().at;
  try {
    const Graph graph = parse_graph("graph():\n    return (" + std::string(text) + ",)\n");
    return Expr(graph.output_node()->arg(0).elements()[0]);
  } catch (const Error& error) {
    lexer_.fail_at(at, "'" + std::string(text) + "' is no literal");
  }
}

std::vector<Expr> PatternParser::elements(std::string_view close) {
  std::vector<Expr> list;
  while (!lexer_.is(close)) {
    list.push_back(lexer_.peek().kind == Kind::ellipsis ? tail() : expression());
    if (PatternAccess::of(list.back()).kind == PatternKind::rest && !lexer_.is(close))
      lexer_.fail("'" + std::string(close) + "' after '...'");
    if (!lexer_.accept(",")) break;
  }
  lexer_.expect(close);
  return list;
}

/// `...`, or `...name`.
Expr PatternParser::tail() {
  const PatternToken dots = lexer_.take();
  const bool named = lexer_.peek().kind == Kind::word && lexer_.peek().at == dots.at + dots.text.size();
  return named ? match::rest(value_name(lexer_.take())) : match::rest();
}

std::string_view PatternParser::value_name(const PatternToken& token) const {
  std::string_view name = token.text;
  if (name.starts_with('%')) name.remove_prefix(1);
  if (name.empty() || name.find('.') != std::string_view::npos || name.find(':') != std::string_view::npos) {
    lexer_.fail_at(token.at, "'" + std::string(token.text) + "' is no name; write arguments after an operator, `" +
                                 std::string(token.text) + "(...)`");
  }
  if (is_taken(name))
    lexer_.fail_at(token.at, "'" + std::string(name) + "' is a word of patterns; choose another name");
  const auto parameter = in_formula_ ? bound_.find(name) : bound_.end();
  if (parameter == bound_.end()) return name;
  const ExprNode& value = PatternAccess::of(parameter->second);
  if (value.kind != PatternKind::any || value.name.empty())
    lexer_.fail_at(token.at, "the parameter " + std::string(name) + " names a value here: give a name for it");
  return value.name.view();
}

bool is_graph_text(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text.substr(start).starts_with("graph(");
}

PatternData parse_pattern(std::string_view text, const Predicates& predicates) {
  if (is_graph_text(text)) return read_graph(parse_graph(text, "<pattern>"), {});
  return flatten(PatternParser(text, predicates).parse());
}

PatternData parse_expression(std::string_view text) { return flatten(PatternParser(text, {}).parse(), false); }

}  // namespace fx::internal
