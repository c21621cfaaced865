#include <fxgraph/matchers/pattern_lexer.h>

#include <cctype>

namespace fx::internal {

namespace {

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '%'; }
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_decimal(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_sign(char c) { return c == '-' || c == '+'; }

/// The character there; none, which fits nothing, behind the end.
char char_at(std::string_view text, std::size_t at) { return at < text.size() ? text[at] : '\0'; }

}  // namespace

bool PatternLexer::accept(std::string_view punctuation) {
  if (!is(punctuation)) return false;
  advance();
  return true;
}

void PatternLexer::expect(std::string_view punctuation) {
  if (!accept(punctuation)) fail("'" + std::string(punctuation) + "'");
}

char PatternLexer::next_character() const {
  std::size_t at = next_;
  while (char_at(text_, at) == ' ') ++at;
  return char_at(text_, at);
}

/// A line that starts with `|` goes on with the alternatives of the one before.
bool PatternLexer::goes_on(std::size_t at) const {
  while (std::isspace(static_cast<unsigned char>(char_at(text_, at)))) ++at;
  return char_at(text_, at) == '|';
}

void PatternLexer::skip_space() {
  for (;;) {
    const char c = char_at(text_, next_);
    if (c == '#' && (next_ == 0 || std::isspace(static_cast<unsigned char>(text_[next_ - 1]))) &&
        !starts_word(char_at(text_, next_ + 1))) {
      next_ = std::min(text_.find('\n', next_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && (depth_ > 0 || goes_on(next_ + 1)))) {
      ++next_;
    } else {
      return;
    }
  }
}

// A word may hold `::` and `.` between its parts, as targets do; a leading `%` is FX's mark of a value.
std::size_t PatternLexer::word_end(std::string_view text, std::size_t at) {
  if (text[at] == '%') ++at;
  for (;;) {
    if (in_word(char_at(text, at)) || (char_at(text, at) == '.' && in_word(char_at(text, at + 1)))) {
      ++at;
    } else if (text.substr(at, 2) == "::" && in_word(char_at(text, at + 2))) {
      at += 2;
    } else {
      return at;
    }
  }
}

bool PatternLexer::is_one_word(std::string_view text) {
  return starts_word(char_at(text, 0)) && text[0] != '%' && word_end(text, 0) == text.size();
}

std::string_view PatternLexer::without_modifiers(std::string_view word) {
  std::size_t end = word.size();
  for (std::size_t dot = word.rfind('.'); dot != std::string_view::npos && dot > 0; dot = word.rfind('.', dot - 1)) {
    const std::string_view part = word.substr(dot + 1, end - dot - 1);
    if (part != "used_once" && part != "uses" && part != "if" && part != "is") break;
    end = dot;
  }
  return word.substr(0, end);
}

void PatternLexer::cut_modifiers() {
  if (token_.kind != PatternToken::Kind::word) return;
  token_.text = without_modifiers(token_.text);
  next_ = token_.at + token_.text.size();
}

// A point that a name follows ends the number, unless the name may be an exponent: `1.e5`.
std::size_t PatternLexer::number_end(std::size_t at) const {
  if (is_sign(text_[at])) ++at;
  while (is_decimal(char_at(text_, at)) || char_at(text_, at) == '.') {
    const char after = char_at(text_, at + 1);
    if (text_[at] == '.' && std::isalpha(static_cast<unsigned char>(after)) && after != 'e') break;
    ++at;
  }
  if (char_at(text_, at) != 'e' && char_at(text_, at) != 'E') return at;
  std::size_t digits = at + 1;
  if (is_sign(char_at(text_, digits))) ++digits;
  if (!is_decimal(char_at(text_, digits))) return at;
  while (is_decimal(char_at(text_, digits))) ++digits;
  return digits;
}

std::size_t PatternLexer::string_end(std::size_t at) const {
  const char quote = text_[at++];
  while (at < text_.size() && text_[at] != quote) at += text_[at] == '\\' ? 2 : 1;
  if (at >= text_.size()) fail_at(at, "the string is not closed");
  return at + 1;
}

void PatternLexer::advance() {
  using Kind = PatternToken::Kind;
  skip_space();
  token_ = {Kind::end, {}, next_};
  if (next_ >= text_.size()) return;
  const char c = text_[next_];
  const char following = char_at(text_, next_ + 1);
  std::size_t end = next_ + 1;
  token_.kind = Kind::punctuation;
  if (c == '\n' || c == ';') {
    token_.kind = Kind::newline;
  } else if (starts_word(c)) {
    token_.kind = Kind::word;
    end = word_end(text_, next_);
  } else if (text_.substr(next_, 3) == "...") {
    token_.kind = Kind::ellipsis;
    end = next_ + 3;
  } else if (is_decimal(c) || (is_sign(c) && (is_decimal(following) || following == '.'))) {
    token_.kind = Kind::number;
    end = number_end(next_);
  } else if (text_.substr(next_, 4) == "-inf" && word_end(text_, next_ + 1) == next_ + 4) {
    token_.kind = Kind::number;
    end = next_ + 4;
  } else if (c == '\'' || c == '"') {
    token_.kind = Kind::string;
    end = string_end(next_);
  } else if (c == '/') {
    token_.kind = Kind::regex;
    char at = char_at(text_, end);
    for (; at != '/' && at != '\n' && at != '\0'; at = char_at(text_, end)) end += at == '\\' ? 2 : 1;
    if (at != '/') fail_at(next_, "the regular expression is not closed by '/'");
    token_.text = text_.substr(next_ + 1, end - next_ - 1);
    next_ = end + 1;
    return;
  } else if (c == '(' || c == '[' || c == '{') {
    ++depth_;
  } else if (c == ')' || c == ']' || c == '}') {
    --depth_;
  }
  token_.text = text_.substr(next_, end - next_);
  next_ = end;
}

std::string_view PatternLexer::take_balanced() {
  const std::size_t start = token_.at;
  std::size_t at = start;
  for (int open = 1; at < text_.size();) {
    const char c = text_[at];
    if (c == '\'' || c == '"') {
      at = string_end(at);
      continue;
    }
    open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (open == 0) break;
    ++at;
  }
  if (at >= text_.size()) fail_at(start, "the parenthesis is not closed");
  next_ = at + 1;
  depth_ -= 1 + (is("(") || is("[") || is("{"));
  advance();
  return text_.substr(start, at - start);
}

std::string_view PatternLexer::take_until(char close) {
  const std::size_t start = token_.at;
  const std::size_t at = text_.find(close, start);
  if (at == std::string_view::npos) fail_at(start, std::string("expected '") + close + "'");
  next_ = at + 1;
  if (close == ']') --depth_;
  advance();
  return text_.substr(start, at - start);
}

void PatternLexer::fail(const std::string& expected) const {
  using Kind = PatternToken::Kind;
  const std::string found = token_.kind == Kind::end       ? "the end"
                            : token_.kind == Kind::newline ? "the end of the line"
                                                           : "'" + std::string(token_.text) + "'";
  fail_at(token_.at, "expected " + expected + ", found " + found);
}

void PatternLexer::fail_at(std::size_t at, const std::string& message) const {
  SourceLocation location{"<pattern>", 1, 1};
  for (const char c : text_.substr(0, std::min(at, text_.size()))) {
    location.column = c == '\n' ? 1 : location.column + 1;
    location.line += c == '\n';
  }
  throw Error(ErrorKind::syntax, message, {}, location);
}

}  // namespace fx::internal
