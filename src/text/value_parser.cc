#include <fxgraph/text/value_parser.h>

#include <algorithm>

#include <fxgraph/text/syntax.h>

namespace fx::internal {

namespace {

constexpr std::size_t kLongestKey = 128;         // looked at to tell a key from the rest of a bare string
constexpr std::size_t kLongestBare = 64 * 1024;  // a longer bare string is no string but a damaged text

std::string quoted(char c) { return std::string("'") + c + "'"; }

}  // namespace

Argument ValueParser::parse(const ValueContext& context) {
  const std::size_t start = in_.position();
  const char c = in_.peek();
  if (c == '%') return parse_node();
  if (is_name_start(c)) return parse_word(context);
  if (is_digit(c) || c == '-' || c == '+' || c == '.') {
    while (is_number_char(in_.peek())) in_.advance();
    Argument value;
    if (read_literal(in_.from(start), value) && ends_value(context)) return value;
    return parse_bare(start, context);
  }
  switch (c) {
    case '\'':
    case '"': return Argument(in_.take_quoted());
    case '(': return parse_tuple(context.plain);
    case '[': {
      in_.advance();
      std::vector<Argument> elements;
      Nested nested(*this, start);
      parse_elements(']', context.plain, elements);
      return Argument::list(elements);
    }
    case '{': return parse_dict(context.plain);
    case '<': {
      Argument value;
      if (parse_object(start, context, value)) return value;
      break;
    }
    default: break;
  }
  return parse_bare(start, context);
}

// ── Containers ───────────────────────────────────────────────────────────────────────────────────────────────────────

bool ValueParser::parse_elements(char closing, bool plain, std::vector<Argument>& elements) {
  const std::size_t opening = in_.position() - 1;
  const ValueContext context{closing, plain};
  skip_space(opening);
  if (in_.accept(closing)) return false;
  while (true) {
    elements.push_back(parse(context));
    skip_space(opening);
    if (in_.accept(closing)) return false;
    if (in_.at_end()) fail_unclosed(opening);
    if (!in_.accept(',')) in_.fail("',' or " + quoted(closing));
    if (in_.accept(closing)) return true;
    const std::size_t comma = in_.position();
    skip_space(opening);
    // Python's text has a blank and nothing after the last comma only where an empty string stands.
    const bool wrapped = plain || in_.from(comma).find('\n') != std::string_view::npos;
    if (wrapped && in_.accept(closing)) return true;
  }
}

Argument ValueParser::parse_tuple(bool plain) {
  const std::size_t opening = in_.position();
  Argument number;
  if (parse_python_complex(number)) return number;
  in_.advance();
  std::vector<Argument> elements;
  Nested nested(*this, opening);
  const bool comma = parse_elements(')', plain, elements);
  return elements.size() == 1 && !comma ? elements[0] : Argument::tuple(elements);
}

Argument ValueParser::parse_dict(bool plain) {
  const std::size_t opening = in_.position();
  in_.advance();
  Nested nested(*this, opening);
  std::vector<Argument> pairs;
  skip_space(opening);
  while (!in_.accept('}')) {
    pairs.push_back(parse({.closing = '}', .plain = plain, .key = true}));
    skip_space(opening);
    if (!in_.accept(':')) in_.fail("':' after the key");
    skip_space(opening);
    pairs.push_back(parse({.closing = '}', .plain = plain, .in_dict = true}));
    skip_space(opening);
    if (in_.at_end()) fail_unclosed(opening);
    if (in_.peek() != '}' && !in_.accept(',')) in_.fail("',' or '}'");
    skip_space(opening);
  }
  return Argument::dict(pairs);
}

void ValueParser::parse_kwargs(std::vector<NamedArgument>& kwargs) {
  const std::size_t opening = in_.position() - 1;
  skip_space(opening);
  while (!in_.accept('}')) {
    const std::size_t start = in_.position();
    std::string name;
    if (in_.peek() == '\'' || in_.peek() == '"') {
      name = in_.take_quoted();
    } else {
      name = in_.take_name();
      if (name.empty()) in_.fail("a keyword or '}'");
    }
    in_.skip_blanks();
    if (!in_.accept(':')) in_.fail("':' after the keyword");
    const Symbol symbol(name);
    for (const NamedArgument& kwarg : kwargs) {
      if (kwarg.name == symbol) in_.fail_at(start, "the keyword " + name + " stands here twice; remove one");
    }
    skip_space(opening);
    kwargs.push_back({symbol, parse({.closing = '}', .in_dict = true})});
    skip_space(opening);
    if (in_.at_end()) fail_unclosed(opening);
    if (in_.peek() != '}' && !in_.accept(',')) in_.fail("',' or '}'");
    skip_space(opening);
  }
}

// ── Nodes and words ──────────────────────────────────────────────────────────────────────────────────────────────────

Argument ValueParser::parse_node() {
  const std::size_t start = in_.position();
  in_.advance();
  const std::string_view name = in_.take_name();
  if (name.empty()) in_.fail("a node's name after '%'", "put a string that begins with % in quotes");
  if (Node* node = names_.find(name)) return Argument(node);
  fail_unknown(start, name);
}

Argument ValueParser::parse_word(const ValueContext& context) {
  const std::size_t start = in_.position();
  in_.skip_word();
  std::string_view word = in_.from(start);
  if (in_.peek() == '(') {
    if (word == "slice") return parse_slice(start);
    if (word == "device" || word == "torch.device") return parse_device();
    if (word == "complex") return parse_complex(start);
    if (word == "opaque" && (in_.peek(1) == '\'' || in_.peek(1) == '"')) {
      in_.advance();
      const std::string text = in_.take_quoted();
      in_.expect(')');
      return Argument::opaque(text);
    }
  }
  Argument value;
  if (in_.peek() == '(' || (word == "b" && (in_.peek() == '\'' || in_.peek() == '"'))) {
    if (parse_object(start, context, value)) return value;
    return parse_bare(start, context);
  }
  if (in_.peek() == ':' && !context.key && is_digit(in_.peek(1))) {  // cuda:0
    in_.advance();
    while (is_digit(in_.peek())) in_.advance();
    word = in_.from(start);
  }
  // FX prints strings bare, and a blank behind each comma: `ij,jk->ik` is one string.
  if (is_glued(in_.position(), context) && !read_literal(word, value)) return parse_bare(start, context);
  if (!ends_value(context)) {
    if (!context.plain) return parse_bare(start, context);
    in_.skip_blanks();
    in_.fail(context.closing == '\n' ? "the end of the line" : "',' or " + quoted(context.closing));
  }
  if (read_literal(word, value)) {
    // A node may be called `cpu`; Python writes no device like that where nodes are plain.
    if (context.plain && value.kind() == ArgumentKind::device && names_.find(word))
      return parse_plain_name(start, word);
    return value;
  }
  if (context.plain) return parse_plain_name(start, word);
  return Argument(word);
}

Argument ValueParser::parse_plain_name(std::size_t start, std::string_view word) {
  if (Node* node = names_.find(word)) return Argument(node);
  if (!is_identifier(word)) {
    in_.seek(start);
    in_.fail("a value", "put strings in quotes");
  }
  fail_unknown(start, word);
}

Argument ValueParser::parse_bare(std::size_t start, const ValueContext& context) {
  if (context.plain) {
    in_.seek(start);
    in_.fail("a value");
  }
  while (!in_.at_end() && !ends_bare(in_.position(), context)) {
    if (is_control(in_.peek()) && !is_blank(in_.peek()) && in_.peek() != '\n') in_.fail("a value");
    if (in_.position() - start > kLongestBare) {
      in_.fail_at(start, "expected ',' or " + quoted(context.closing) + " within " + std::to_string(kLongestBare) +
                             " bytes of here; put long strings in quotes");
    }
    in_.advance();
  }
  std::string_view text = in_.from(start);
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\n')) text.remove_suffix(1);
  if (text.empty() && context.key) in_.fail("a key");
  return Argument(text);
}

// ── Ends and errors ──────────────────────────────────────────────────────────────────────────────────────────────────

bool ValueParser::ends_value(const ValueContext& context) const {
  std::size_t ahead = 0;
  while (is_blank(in_.peek(ahead)) || (in_.peek(ahead) == '\n' && context.closing != '\n')) ++ahead;
  const char c = in_.peek(ahead);
  if (c == context.closing || (context.key && c == ':')) return true;
  if (c == ',') return !context.in_dict || key_follows(in_.position() + ahead + 1);
  return in_.position() + ahead >= in_.text().size() || (c == '#' && context.closing == '\n');
}

// A comma within a bare string.
bool ValueParser::is_glued(std::size_t comma, const ValueContext& context) const {
  const std::string_view text = in_.text();
  if (context.plain || context.in_dict || comma + 1 >= text.size() || text[comma] != ',') return false;
  return is_letter(text[comma + 1]) || text[comma + 1] == '.';
}

bool ValueParser::ends_bare(std::size_t position, const ValueContext& context) const {
  const char c = in_.text()[position];
  if (c == context.closing) return true;
  if (is_glued(position, context)) return false;
  if (c == ',') return !context.in_dict || key_follows(position + 1);
  if (c == ':') return context.key;
  return c == '\n' && in_.statement_at(position + 1);
}

// True for `key:`, where a key is a short run without punctuation, or something that only a key can be.
bool ValueParser::key_follows(std::size_t position) const {
  const std::string_view text = in_.text();
  while (position < text.size() && (is_blank(text[position]) || text[position] == '\n')) ++position;
  if (position == text.size()) return false;
  if (std::string_view("'\"%([{<").find(text[position]) != std::string_view::npos) return true;
  std::size_t end = position;
  const std::size_t limit = std::min(text.size(), position + kLongestKey);
  while (end < limit && (is_number_char(text[end]) || text[end] == ' ' || text[end] == '/')) ++end;
  if (end == position || end == text.size()) return false;
  return text[end] == ':' || (text[end] == '(' && is_constructor(text.substr(position, end - position)));
}

// Inside brackets a line may end anywhere, but not where the next one is a statement: then a bracket was forgotten.
void ValueParser::skip_space(std::size_t opening) {
  while (true) {
    in_.skip_blanks();
    if (in_.peek() != '\n') return;
    if (in_.statement_at(in_.position() + 1)) fail_unclosed(opening);
    in_.advance();
  }
}

void ValueParser::fail_unclosed(std::size_t opening) const {
  const char open = in_.text()[opening];
  const SourceLocation place = in_.location(opening);
  const char closing = open == '[' ? ']' : open == '{' ? '}' : ')';
  in_.fail(quoted(closing) + " to close the " + quoted(closing == ')' ? '(' : open) + " at " +
           std::to_string(place.line) + ":" + std::to_string(place.column));
}

void ValueParser::fail_nesting(std::size_t opening) const {
  in_.fail_at(opening,
              "containers nest more than " + std::to_string(Argument::kMaxNesting) + " deep here; flatten them");
}

void ValueParser::fail_unknown(std::size_t position, std::string_view name) const {
  const std::string marked = "%" + std::string(name);
  const std::string found = "expected a node defined above, found " + marked;
  const std::string_view text = in_.text();
  const std::size_t line = text.rfind('\n', position) + 1;  // npos + 1 is 0
  for (std::size_t at = text.find(marked, line); at != std::string_view::npos; at = text.find(marked, at + 1)) {
    std::size_t after = at + marked.size();
    while (after < text.size() && is_blank(text[after])) ++after;
    if (after >= text.size() || (text[after] != ':' && text[after] != '=')) continue;
    if (at < position) in_.fail_at(position, found + ", the node of this line; a node cannot use itself");
    in_.fail_at(position, found + ", which is defined below at line " + std::to_string(in_.location(at).line) +
                              "; move its definition up");
  }
  const std::string_view near = names_.nearest(name);
  in_.fail_at(position, found + (near.empty() ? ", which is defined nowhere; define it, or put a string in quotes"
                                              : "; did you mean %" + std::string(near) + "?"));
}

}  // namespace fx::internal
