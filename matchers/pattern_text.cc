// The text of patterns: a recursive-descent parser of the grammar in docs/matching.md.
#include <array>
#include <charconv>
#include <cstdlib>
#include <unordered_map>

#include "matchers/pattern_data.h"
#include "matchers/pattern_lexer.h"
#include "text/parse.h"

namespace fx::internal {

namespace {

using match::Expr;
using Kind = PatternToken::Kind;

/// Words that stand for one kind of value, `c: float`.
struct KindWord {
  std::string_view word;
  Expr (*make)(std::string_view name);
};

constexpr std::array kKindWords = {
    KindWord{"any", match::any},        KindWord{"node", match::value},      KindWord{"literal", match::lit_any},
    KindWord{"int", match::lit_int},    KindWord{"float", match::lit_float}, KindWord{"bool", match::lit_bool},
    KindWord{"str", match::lit_string},
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  std::vector<Expr> parse() {
    std::vector<Expr> results;
    skip_newlines();
    while (results.empty()) {
      if (lexer_.is_word("return")) {
        lexer_.take();
        results = list_until_line_ends();
      } else if (lexer_.peek().kind == Kind::word && lexer_.next_character() == '=' && !lexer_.is_word("_")) {
        statement();
      } else {
        results = list_until_line_ends();
      }
      skip_newlines();
    }
    if (lexer_.peek().kind != Kind::end) lexer_.fail("the end: a pattern ends with what it returns");
    return results;
  }

 private:
  void skip_newlines() {
    while (lexer_.peek().kind == Kind::newline) lexer_.take();
  }

  void statement() {
    const PatternToken name = lexer_.take();
    const std::string_view text = value_name(name);
    lexer_.expect("=");
    if (!bound_.emplace(text, expression().name(text)).second)
      lexer_.fail_at(name.at, "the name " + std::string(text) + " is bound twice");
    if (lexer_.peek().kind != Kind::newline) lexer_.fail("the end of the line");
  }

  std::vector<Expr> list_until_line_ends() {
    std::vector<Expr> list = {expression()};
    while (lexer_.accept(",")) list.push_back(expression());
    if (lexer_.peek().kind != Kind::newline && lexer_.peek().kind != Kind::end)
      lexer_.fail("',' or the end of the line");
    return list;
  }

  Expr expression() {
    if (++depth_ > 200) lexer_.fail_at(lexer_.peek().at, "the pattern nests too deep; name its parts");
    std::vector<Expr> alternatives = {primary()};
    while (lexer_.accept("|")) alternatives.push_back(primary());
    --depth_;
    return alternatives.size() == 1 ? alternatives[0] : match::any_of(alternatives);
  }

  Expr primary() {
    const PatternToken& token = lexer_.peek();
    switch (token.kind) {
      case Kind::number: return number();
      case Kind::string: return literal(lexer_.take().text);
      case Kind::regex: return call(Op::call_function, match::re(lexer_.take().text));
      case Kind::word: return word();
      default: break;
    }
    if (lexer_.accept("(")) {
      Expr inner = expression();
      lexer_.expect(")");
      return modified(inner);
    }
    if (lexer_.accept("[")) return match::list(elements("]"));
    if (lexer_.accept("#")) return call(Op::call_function, TargetSet(tag()));
    if (lexer_.accept("{")) return call(Op::call_function, target_set());
    lexer_.fail("a value");
  }

  // A word is a keyword, an operator (it has `::`, or arguments follow), a name with a kind after it, or a name.
  Expr word() {
    PatternToken token = lexer_.take();
    const std::string_view text = token.text;
    if (lexer_.accept(":")) return primary().name(value_name(token));
    if (text == "_") return modified(match::any());
    if (text == "None") return Expr(Argument());
    if (text == "True" || text == "False") return Expr(text == "True");
    if (text == "inf" || text == "nan") return literal(text);
    if (text == "get_attr") return attribute();
    if (text == "call_module" || text == "call_method" || text == "call_function") return spelled_call(text);
    if (lexer_.is("(")) {
      if (text == "maybe") return modified(match::maybe(argument()));
      if (text == "commutative") return modified(commutative());
      if (text == "lit") return whole_literal();
      if (text == "near") return near();
    }
    for (const KindWord& kind : kKindWords) {
      if (kind.word == text && !lexer_.is("(")) return modified(kind.make({}));
    }
    std::string_view modifier;
    const std::string_view bare = split_modifier(text, modifier);
    const bool is_target = bare.find("::") != std::string_view::npos || (modifier.empty() && lexer_.is("("));
    const std::string_view name = is_target ? std::string_view() : value_name({token.kind, bare, token.at});
    const auto known = bound_.find(name);
    const Expr expr = is_target               ? call(Op::call_function, TargetSet(bare))
                      : known != bound_.end() ? known->second
                                              : match::any(name);
    return modifier.empty() ? expr : modified(modify(expr, modifier));
  }

  std::string_view value_name(const PatternToken& token) const {
    std::string_view name = token.text;
    if (name.starts_with('%')) name.remove_prefix(1);
    if (name.empty() || name.find('.') != std::string_view::npos || name.find(':') != std::string_view::npos) {
      lexer_.fail_at(token.at, "'" + std::string(token.text) + "' is no name; write arguments after an operator, `" +
                                   std::string(token.text) + "(...)`");
    }
    return name;
  }

  /// `conv.used_once` is one word; cuts it in two.
  static std::string_view split_modifier(std::string_view word, std::string_view& modifier) {
    for (const std::string_view known : {".used_once", ".uses"}) {
      if (!word.ends_with(known)) continue;
      modifier = known.substr(1);
      return word.substr(0, word.size() - known.size());
    }
    return word;
  }

  /// What may follow a primary: `.used_once`, `.uses(1, 3)`.
  Expr modified(Expr expr) {
    while (lexer_.accept(".")) {
      if (lexer_.peek().kind != Kind::word) lexer_.fail("used_once or uses");
      expr = modify(expr, lexer_.take().text);
    }
    return expr;
  }

  Expr modify(const Expr& expr, std::string_view modifier) {
    if (modifier == "used_once") return expr.used_once();
    if (modifier != "uses") lexer_.fail("used_once or uses");
    lexer_.expect("(");
    const std::uint32_t low = count();
    const std::uint32_t high = lexer_.accept(",") ? count() : low;
    lexer_.expect(")");
    return expr.uses(low, high);
  }

  std::uint32_t count() {
    std::uint32_t value = 0;
    const std::string_view text = lexer_.peek().text;
    if (lexer_.peek().kind != Kind::number ||
        std::from_chars(text.data(), text.data() + text.size(), value).ptr != text.data() + text.size()) {
      lexer_.fail("a number of uses");
    }
    lexer_.take();
    return value;
  }

  Expr call(Op op, TargetSet targets) {
    if (!lexer_.accept("(")) return modified(match::call(op, std::move(targets), {}));
    Expr made = call_with(op, std::move(targets));
    return modified(made);
  }

  /// The arguments, up to and with the closing parenthesis.
  Expr call_with(Op op, TargetSet targets) {
    std::vector<Expr> args;
    std::vector<std::pair<std::string_view, Expr>> kwargs;
    bool open = false;
    while (!lexer_.is(")")) {
      if (open) lexer_.fail("')' after '...'");
      if (lexer_.peek().kind == Kind::ellipsis) {
        lexer_.take();
        open = true;
      } else if (lexer_.peek().kind == Kind::word && lexer_.next_character() == '=') {
        const std::string_view name = lexer_.take().text;
        lexer_.expect("=");
        kwargs.emplace_back(name, expression());
      } else if (kwargs.empty()) {
        args.push_back(expression());
      } else {
        lexer_.fail("a keyword argument: positional ones come first");
      }
      if (!lexer_.accept(",")) break;
    }
    lexer_.expect(")");
    if (open) args.push_back(match::rest());
    // `f()` has no arguments at all, `f` any.
    Expr made =
        args.empty() ? match::call(op, std::move(targets), {match::rest()}) : match::call(op, std::move(targets), args);
    if (!open && args.empty()) made = without_rest(made);
    for (auto& [name, value] : kwargs) made = made.kwarg(name, value);
    return made;
  }

  static Expr without_rest(const Expr& expr) {
    ExprNode node = expr.node();
    node.open = false;
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
  }

  Expr commutative() {
    lexer_.expect("(");
    const std::size_t at = lexer_.peek().at;
    ExprNode node = expression().node();
    if (node.kind != PatternKind::call || node.args.size() < 2)
      lexer_.fail_at(at, "commutative(…) holds a call with two operands");
    lexer_.expect(")");
    node.commutative = true;
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
  }

  Expr argument() {
    lexer_.expect("(");
    Expr inner = expression();
    lexer_.expect(")");
    return inner;
  }

  std::vector<Expr> elements(std::string_view close) {
    std::vector<Expr> list;
    while (!lexer_.is(close)) {
      if (lexer_.peek().kind == Kind::ellipsis) {
        lexer_.take();
        list.push_back(match::rest());
      } else {
        list.push_back(expression());
      }
      if (!lexer_.accept(",")) break;
    }
    lexer_.expect(close);
    return list;
  }

  Tag tag() {
    for (const Tag tag : {Tag::pointwise, Tag::view, Tag::reduction, Tag::random, Tag::mutating}) {
      if (!lexer_.is_word(to_string(tag))) continue;
      lexer_.take();
      return tag;
    }
    lexer_.fail("pointwise, view, reduction, random or mutating after '#'");
  }

  /// One member of `{…}` or what stands in `call_module[…]`.
  TargetSet target_set() {
    std::vector<TargetSet> sets;
    do {
      if (lexer_.accept("#")) {
        sets.emplace_back(tag());
      } else if (lexer_.peek().kind == Kind::regex) {
        sets.push_back(match::re(lexer_.take().text));
      } else if (lexer_.peek().kind == Kind::word) {
        sets.emplace_back(lexer_.take().text);
      } else {
        lexer_.fail("an operator");
      }
    } while (lexer_.accept(","));
    lexer_.expect("}");
    return TargetSet(sets);
  }

  /// `[path]`, where a path may be anything but `]`, or `[/regex/]`, or `[{set}]`.
  TargetSet bracketed() {
    if (!lexer_.is("[")) return {};
    lexer_.take();
    TargetSet set;
    if (lexer_.peek().kind == Kind::regex) {
      set = match::re(lexer_.take().text);
      lexer_.expect("]");
    } else if (lexer_.accept("{")) {
      set = target_set();
      lexer_.expect("]");
    } else {
      set = TargetSet(lexer_.take_until(']'));
    }
    return set;
  }

  Expr attribute() { return modified(match::parameter({}, bracketed())); }

  Expr spelled_call(std::string_view word) {
    const Op op = word == "call_module" ? Op::call_module : word == "call_method" ? Op::call_method : Op::call_function;
    return call(op, bracketed());
  }

  Expr number() { return literal(lexer_.take().text); }

  Expr near() {
    lexer_.expect("(");
    const Expr value = number();
    lexer_.expect(",");
    const std::string tolerance(lexer_.take().text);
    lexer_.expect(")");
    return value.within(std::strtod(tolerance.c_str(), nullptr));
  }

  Expr whole_literal() {
    lexer_.take();
    return literal(lexer_.take_balanced());
  }

  /// Literals are FX text: the graph parser reads them.
  Expr literal(std::string_view text) {
    const std::size_t at = lexer_.peek().at;
    try {
      const Graph graph = parse_graph("graph():\n    return (" + std::string(text) + ",)\n");
      return Expr(graph.output_node()->arg(0).elements()[0]);
    } catch (const Error& error) {
      lexer_.fail_at(at, "'" + std::string(text) + "' is no literal");
    }
  }

  PatternLexer lexer_;
  std::unordered_map<std::string_view, Expr> bound_;
  int depth_ = 0;
};

}  // namespace

bool is_graph_text(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text.substr(start).starts_with("graph(");
}

PatternData parse_pattern(std::string_view text) {
  if (is_graph_text(text)) return read_graph(parse_graph(text, "<pattern>"), {});
  return flatten(Parser(text).parse());
}

PatternData parse_expression(std::string_view text) { return flatten(Parser(text).parse(), false); }

}  // namespace fx::internal
