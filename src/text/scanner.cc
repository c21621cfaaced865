#include <fxgraph/text/scanner.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include <fxgraph/text/syntax.h>

namespace fx::internal {

namespace {

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_utf8(std::string& out, std::uint32_t point) {
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xC0 | (point >> 6));
    out += static_cast<char>(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 | (point >> 12));
    out += static_cast<char>(0x80 | ((point >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (point & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (point >> 18));
    out += static_cast<char>(0x80 | ((point >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((point >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (point & 0x3F));
  }
}

std::string byte_text(char c) {
  std::array<char, 16> buffer;
  std::snprintf(buffer.data(), buffer.size(), "byte 0x%02x", static_cast<unsigned char>(c));
  return buffer.data();
}

}  // namespace

std::string_view Scanner::take_name() {
  const std::size_t start = at_;
  std::size_t at = start;
  if (at < text_.size() && is_name_start(text_[at])) {
    while (at < text_.size() && is_name_char(text_[at])) ++at;
  }
  at_ = at;
  return from(start);
}

void Scanner::skip_to_statement() {
  while (true) {
    skip_blanks();
    if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    if (!accept('\n')) return;
  }
}

void Scanner::expect_line_end() {
  skip_blanks();
  if (!at_line_end()) fail("the end of the line");
  at_ = std::min(text_.find('\n', at_), text_.size());
}

bool Scanner::statement_at(std::size_t position) const {
  Scanner line(*this);
  line.seek(position);
  line.skip_blanks();
  if (line.accept('%')) {
    if (line.take_name().empty()) return false;
    line.skip_blanks();
    return line.peek() == ':' || line.peek() == '=';
  }
  return line.take_name() == "return" && !line.at_end() && (is_blank(line.peek()) || line.peek() == '\n');
}

// Python's escapes; an unknown one stands for itself, as in Python.
void Scanner::take_escape(std::string& out) {
  const char c = peek();
  advance();
  switch (c) {
    case 'n': out += '\n'; return;
    case 'r': out += '\r'; return;
    case 't': out += '\t'; return;
    case 'a': out += '\a'; return;
    case 'b': out += '\b'; return;
    case 'f': out += '\f'; return;
    case 'v': out += '\v'; return;
    case '\\':
    case '\'':
    case '"': out += c; return;
    default: break;
  }
  const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  std::uint32_t point = 0;
  bool valid = digits > 0;
  for (int i = 0; valid && i < digits; ++i) {
    const int value = hex_value(peek(static_cast<std::size_t>(i)));
    valid = value >= 0;
    point = point * 16 + static_cast<std::uint32_t>(value);
  }
  if (valid && point <= 0x10FFFF) {
    advance(static_cast<std::size_t>(digits));
    // Our own printer writes control bytes as \x1f; from 0x80 on Python means a character.
    append_utf8(out, point);
    return;
  }
  out += '\\';
  out += c;
}

std::string Scanner::take_quoted() {
  const std::size_t start = at_;
  const char quote = peek();
  advance();
  std::string out;
  while (true) {
    const std::size_t run = at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\' && text_[at_] != '\n') ++at_;
    out += from(run);
    if (at_end() || peek() == '\n' || (peek() == '\\' && (at_ + 1 == text_.size() || peek(1) == '\n'))) {
      fail_at(start, std::string("this string is not closed on its line; write its closing ") + quote +
                         ", and line breaks as \\n");
    }
    const char c = peek();
    advance();
    if (c == quote) return out;
    take_escape(out);
  }
}

std::string Scanner::found() const {
  if (at_end()) return "the end of the text";
  const char c = peek();
  if (c == '\n' || (c == '\r' && peek(1) == '\n')) return "the end of the line";
  if (is_control(c) || c == '\t' || (static_cast<unsigned char>(c) & 0xC0) == 0x80) return byte_text(c);
  std::size_t length = 0;
  constexpr std::size_t kShown = 32;
  while (length < kShown && is_name_char(peek(length))) ++length;
  if (length == 0) length = 1;
  // A character of several bytes is shown whole.
  while (length < kShown && (static_cast<unsigned char>(peek(length)) & 0xC0) == 0x80) ++length;
  return "'" + std::string(rest().substr(0, length)) + "'";
}

void Scanner::fail(const std::string& expected, const std::string& cure) const {
  fail_at(at_, "expected " + expected + ", found " + found() + (cure.empty() ? "" : "; " + cure));
}

void Scanner::fail_at(std::size_t position, const std::string& message) const {
  throw Error(ErrorKind::syntax, message, {}, location(position));
}

SourceLocation Scanner::location(std::size_t position) const {
  const std::string_view before = text_.substr(0, position);
  SourceLocation place{file_, 1, 1};
  place.line += static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  for (const char c : before.substr(line_start)) place.column += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return place;
}

}  // namespace fx::internal
