// The text of patterns: calls, what they call, and what may follow an expression.
#include <algorithm>
#include <charconv>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/pattern_parser.h>
#include <fxgraph/matchers/tensor_text.h>

namespace fx::internal {

using match::Expr;

// ── What may follow an expression ────────────────────────────────────────────────────────────────────────────────────

/// `.used_once`, `.uses(1, 3)`, `.if(> 0)`, `.is(f32[N, C])`.
Expr PatternParser::modified(Expr expr) {
  while (lexer_.accept(".")) {
    if (lexer_.peek().kind != Kind::word) lexer_.fail("used_once, uses, if or is");
    expr = modify(expr, lexer_.take().text);
  }
  return expr;
}

Expr PatternParser::modify(const Expr& expr, std::string_view modifier) {
  if (const std::size_t dot = modifier.find('.'); dot != std::string_view::npos)  // `used_once.is` is one word
    return modify(modify(expr, modifier.substr(0, dot)), modifier.substr(dot + 1));
  if (modifier == "used_once") return expr.used_once();
  if (modifier != "uses" && modifier != "if" && modifier != "is") lexer_.fail("used_once, uses, if or is before it");
  lexer_.expect("(");
  if (modifier == "if") return with_condition(expr);
  if (modifier == "is") return with_type(expr);
  const std::uint32_t low = count();
  const std::uint32_t high = lexer_.accept(",") ? (lexer_.accept("*") ? kManyUses : count()) : low;
  lexer_.expect(")");
  return expr.uses(low, high);
}

/// Comparisons with a number, and predicates by name, separated by commas; the parenthesis is taken.
Expr PatternParser::with_condition(const Expr& expr) {
  Expr made = expr;
  do {
    const PatternToken token = lexer_.peek();
    if (token.kind == Kind::punctuation) {
      std::string comparison(lexer_.take().text);
      if (lexer_.accept("=")) comparison += "=";
      const Expr bound = literal(lexer_.take().text);
      try {
        made = made.where(comparison, PatternAccess::of(bound).literal);
      } catch (const Error& error) {
        lexer_.fail_at(token.at, error.message());
      }
      continue;
    }
    if (token.kind != Kind::word && token.kind != Kind::string) lexer_.fail("a comparison or the name of a predicate");
    lexer_.take();
    const std::string name = token.kind == Kind::word
                                 ? std::string(token.text)
                                 : std::string(PatternAccess::of(literal(token.text)).literal.as_string());
    const auto known = std::find_if(predicates_.begin(), predicates_.end(),
                                    [&](const auto& predicate) { return predicate.first == name; });
    if (known == predicates_.end())
      lexer_.fail_at(token.at,
                     "no predicate '" + name + "' was given; pass it with the text, Pattern(text, predicates)");
    made = made.where(known->second, name);
  } while (lexer_.accept(","));
  lexer_.expect(")");
  return made;
}

Expr PatternParser::with_type(const Expr& expr) {
  ExprNode node = PatternAccess::of(expr);
  read_tensor_type(lexer_, node);
  lexer_.expect(")");
  return PatternAccess::make(std::move(node));
}

std::uint32_t PatternParser::count() {
  std::uint32_t value = 0;
  const std::string_view text = lexer_.peek().text;
  if (lexer_.peek().kind != Kind::number ||
      std::from_chars(text.data(), text.data() + text.size(), value).ptr != text.data() + text.size()) {
    lexer_.fail("a whole number");
  }
  lexer_.take();
  return value;
}

// ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

Expr without_rest(const Expr& expr) {
  ExprNode node = PatternAccess::of(expr);
  node.open = false;
  return PatternAccess::make(std::move(node));
}

}  // namespace

Expr PatternParser::call(Op op, TargetSet targets) {
  if (!lexer_.accept("(")) return modified(match::call(op, std::move(targets), {}));
  Expr made = call_with(op, std::move(targets));
  return modified(made);
}

/// The arguments, up to and with the closing parenthesis.
Expr PatternParser::call_with(Op op, TargetSet targets) {
  std::vector<Expr> args;
  std::vector<std::pair<std::string_view, Expr>> kwargs;
  std::vector<Expr> open;
  while (!lexer_.is(")")) {
    if (!open.empty()) lexer_.fail("')' after '...'");
    if (lexer_.peek().kind == Kind::ellipsis) {
      open.push_back(tail());
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
  // `f()` has no arguments at all, `f` any.
  const bool none = open.empty() && args.empty();
  args.push_back(open.empty() ? match::rest() : open[0]);
  if (open.empty() && !none) args.pop_back();
  Expr made = match::call(op, std::move(targets), args);
  if (none) made = without_rest(made);
  for (auto& [name, value] : kwargs) made = made.kwarg(name, value);
  return made;
}

/// `call_module[path]<type>(x)`, `call_method[name](x)`.
Expr PatternParser::spelled_call(std::string_view word) {
  const Op op = word == "call_module" ? Op::call_module : word == "call_method" ? Op::call_method : Op::call_function;
  TargetSet targets = bracketed('[', ']');
  if (op != Op::call_module || !lexer_.is("<")) return call(op, std::move(targets));
  TargetSet types = bracketed('<', '>');
  const bool bare = !lexer_.is("(");
  if (bare) return modified(match::call(op, std::move(targets), {}).of_type(std::move(types)));
  lexer_.take();
  return modified(call_with(op, std::move(targets)).of_type(std::move(types)));
}

// ── What is called ───────────────────────────────────────────────────────────────────────────────────────────────────

Tag PatternParser::tag(std::string_view word) {
  for (const Tag tag : {Tag::pointwise, Tag::view, Tag::reduction, Tag::random, Tag::mutating}) {
    if (word == to_string(tag)) return tag;
  }
  lexer_.fail("pointwise, view, reduction, random or mutating after '#'");
}

/// The members of `{…}`, and its end.
TargetSet PatternParser::regex() {
  const PatternToken token = lexer_.take();
  try {
    return match::re(token.text);
  } catch (const Error& error) {
    lexer_.fail_at(token.at, error.message());
  }
}

/// The name between the quotes of `spelt("torch.relu")`; the opening bracket is taken.
TargetSet PatternParser::spelling() {
  if (lexer_.peek().kind != Kind::string) lexer_.fail("a name in quotes");
  const Expr name = literal(lexer_.take().text);
  lexer_.expect(")");
  return TargetSet::spelt(PatternAccess::of(name).literal.as_string());
}

TargetSet PatternParser::target_set() {
  std::vector<TargetSet> sets;
  do {
    if (lexer_.accept("#")) {
      sets.emplace_back(tag(lexer_.peek().text));
      lexer_.take();
    } else if (lexer_.peek().kind == Kind::regex) {
      sets.push_back(regex());
    } else if (lexer_.is_word("spelt")) {
      lexer_.take();
      lexer_.expect("(");
      sets.push_back(spelling());
    } else if (lexer_.peek().kind == Kind::word) {
      sets.emplace_back(lexer_.take().text);
    } else {
      lexer_.fail("an operator");
    }
  } while (lexer_.accept(","));
  lexer_.expect("}");
  return TargetSet(sets);
}

/// `[path]`, where a path may be anything but `]`, or `[/regex/]`, or `[{set}]`; nothing is any.
TargetSet PatternParser::bracketed(char open, char close) {
  const std::string_view closing(&close, 1);
  if (!lexer_.accept(std::string_view(&open, 1))) return {};
  TargetSet set;
  if (lexer_.peek().kind == Kind::regex) {
    set = regex();
    lexer_.expect(closing);
  } else if (lexer_.accept("{")) {
    set = target_set();
    lexer_.expect(closing);
  } else {
    set = TargetSet(lexer_.take_until(close));
  }
  return set;
}

}  // namespace fx::internal
