// The characters of a declaration, for the parts of its parser.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include <fxgraph/support/error.h>

namespace fx::internal {

class SchemaScanner {
 public:
  explicit SchemaScanner(std::string_view text) : text_(text) {}

  std::size_t position() const { return at_; }
  void seek(std::size_t position) { at_ = position; }
  bool at_end() const { return at_ == text_.size(); }
  /// The next character, or zero at the end.
  char peek() const { return peek_at(0); }
  char peek_at(std::size_t offset) const { return at_ + offset < text_.size() ? text_[at_ + offset] : '\0'; }
  char next() { return at_end() ? '\0' : text_[at_++]; }
  /// What was read since `start`.
  std::string_view since(std::size_t start) const { return text_.substr(start, at_ - start); }

  void skip_spaces() {
    while (std::isspace(static_cast<unsigned char>(peek()))) ++at_;
  }
  /// Takes `token` if it comes next, after spaces.
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token, std::string_view where) {
    if (!take(token)) fail("'" + std::string(token) + "' " + std::string(where));
  }
  /// Takes a run of letters, digits, underscores and characters of `also`; empty when there is none.
  std::string_view take_word(std::string_view also = {}) {
    skip_spaces();
    const std::size_t start = at_;
    while (is_word(peek()) || (!at_end() && also.find(peek()) != std::string_view::npos)) ++at_;
    return since(start);
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  /// Throws Error(syntax) for the place where it stands.
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string found = at_end() ? "the end" : "'" + std::string(text_.substr(at_, 12)) + "'";
    throw Error(ErrorKind::syntax, "operator declaration: expected " + expected + ", found " + found, {},
                SourceLocation{{}, 1, static_cast<int>(at_) + 1});
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace fx::internal
