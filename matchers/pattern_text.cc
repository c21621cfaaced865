// The text of patterns: statements and expressions.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/pattern_parser.h>
#include <fxgraph/matchers/tensor_text.h>
#include <fxgraph/text/parse.h>

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

/// Words that stand for something, wherever a name could.
bool is_taken(std::string_view word) {
  constexpr std::string_view kTaken[] = {"None",   "True",     "False",       "inf",         "nan",
                                         "return", "get_attr", "call_module", "call_method", "call_function"};
  return std::ranges::find(kTaken, word) != std::end(kTaken) ||
         std::ranges::find(kKindWords, word, &KindWord::word) != kKindWords.end();
}

/// Cuts off the modifiers of a word.
std::string_view split_modifiers(std::string_view word, std::string_view& modifiers) {
  const std::string_view bare = PatternLexer::without_modifiers(word);
  if (bare.size() < word.size()) modifiers = word.substr(bare.size() + 1);
  return bare;
}

}  // namespace

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
    case Kind::string: return literal(lexer_.take().text);
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
  const PatternToken token = lexer_.take();
  const std::string_view text = token.text;
  if (lexer_.accept(":")) return described().name(value_name(token));
  if (text == "None") return Expr(Argument());
  if (text == "True" || text == "False") return Expr(text == "True");
  if (text == "inf" || text == "nan") return literal(text);
  if (text == "call_module" || text == "call_method" || text == "call_function") return spelled_call(text);
  if (text == "get_attr" && lexer_.is("[")) return modified(match::parameter({}, bracketed('[', ']')));
  if (const Formula* formula = lexer_.is("(") ? find_formula(text) : nullptr) return modified(use(*formula, token.at));
  if (lexer_.is("(") || lexer_.is("[")) {
    for (const std::string_view known :
         {"maybe(", "commutative(", "lit(", "near(", "dominates(", "repeat(", "unordered["}) {
      if (known.substr(0, known.size() - 1) == text && lexer_.accept(known.substr(known.size() - 1)))
        return construct(text);
    }
  }
  std::string_view modifier;
  const std::string_view bare = split_modifiers(text, modifier);
  const bool plain = modifier.empty() && lexer_.is("(");
  const auto with_modifier = [&](const Expr& expr) {
    return modified(modifier.empty() ? expr : modify(expr, modifier));
  };
  if (bare == "_") return with_modifier(match::_);
  if (bare == "get_attr" && !plain) return with_modifier(match::parameter());
  for (const KindWord& kind : kKindWords) {
    if (kind.word == bare && !plain) return with_modifier(kind.make({}));
  }
  if (bare.find("::") != std::string_view::npos || plain) {
    return modifier.empty() ? call(Op::call_function, TargetSet(bare))
                            : with_modifier(match::call(Op::call_function, TargetSet(bare), {}));
  }
  const auto known = bound_.find(bare.starts_with('%') ? bare.substr(1) : bare);
  named_.insert(bare.starts_with('%') ? bare.substr(1) : bare);
  return with_modifier(known != bound_.end() ? known->second : match::any(value_name({token.kind, bare, token.at})));
}

/// `#view`, where modifiers may be part of the word.
Expr PatternParser::tagged() {
  std::string_view modifiers;
  const TargetSet targets(tag(split_modifiers(lexer_.peek().text, modifiers)));
  lexer_.take();
  if (modifiers.empty()) return call(Op::call_function, targets);
  return modified(modify(match::call(Op::call_function, targets, {}), modifiers));
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
  if (word == "lit") return literal(lexer_.take_balanced());
  if (word == "near") return near();
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
