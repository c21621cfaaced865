// A cursor over a text, and the errors it reports. Internal to src/text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <fxgraph/support/error.h>
#include <fxgraph/text/syntax.h>

namespace fx::internal {

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// The byte at the cursor (or `ahead` bytes on), 0 at the end.
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool at_end() const { return at_ >= text_.size(); }
  std::size_t position() const { return at_; }
  void seek(std::size_t position) { at_ = position; }
  void advance(std::size_t bytes = 1) { at_ += bytes; }
  std::string_view rest() const { return text_.substr(at_); }
  std::string_view text() const { return text_; }
  std::string_view from(std::size_t start) const { return text_.substr(start, at_ - start); }

  /// Skips blanks of this line.
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  /// Takes `word` if it is next.
  bool accept(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool accept(char c) {
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  /// Takes `c`, blanks before it skipped.
  void expect(char c) {
    skip_blanks();
    if (!accept(c)) fail(std::string("'") + c + "'");
  }
  /// Takes the name that is next: letters, digits and `_`. Empty when there is none.
  std::string_view take_name();
  /// Skips letters, digits, `_` and `.`.
  void skip_word() {
    std::size_t at = at_;
    while (at < text_.size() && is_word_char(text_[at])) ++at;
    at_ = at;
  }
  /// Skips blanks, blank lines and comment lines.
  void skip_to_statement();
  /// Requires the end of the line (a comment may stand before it).
  void expect_line_end();
  /// True at a newline, the end or a comment.
  bool at_line_end() const { return at_end() || peek() == '\n' || peek() == '#'; }
  /// True when the line that starts at `position` opens a statement: a newline in the middle of another is a mistake
  /// then.
  bool statement_at(std::size_t position) const;

  /// Takes a quoted text, escapes resolved.
  std::string take_quoted();

  /// Throws Error(syntax): `expected X, found Y`, at the cursor, with a cure when there is one.
  [[noreturn]] void fail(const std::string& expected, const std::string& cure = {}) const;
  [[noreturn]] void fail_at(std::size_t position, const std::string& message) const;
  /// The place of `position`, for messages and errors.
  SourceLocation location(std::size_t position) const;

 private:
  std::string found() const;
  void take_escape(std::string& out);

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace fx::internal
