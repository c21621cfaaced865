// Words of the pattern text. Internal to matchers/.
#pragma once

#include <string>
#include <string_view>

#include <fxgraph/support/error.h>

namespace fx::internal {

struct PatternToken {
  enum class Kind { end, newline, word, number, string, regex, ellipsis, punctuation };
  Kind kind = Kind::end;
  std::string_view text;  ///< as written; of a regex, without the slashes
  std::size_t at = 0;     ///< offset in the pattern
};

/// Cuts a pattern into tokens, one of look-ahead. Newlines count outside brackets only; `;` is a newline; `#` after a
/// space starts a comment that ends with the line.
class PatternLexer {
 public:
  /// Reads `text` from the offset `from` on.
  explicit PatternLexer(std::string_view text, std::size_t from = 0) : text_(text), next_(from) { advance(); }

  std::string_view text() const { return text_; }

  const PatternToken& peek() const { return token_; }
  PatternToken take() {
    PatternToken token = token_;
    advance();
    return token;
  }
  bool is(std::string_view punctuation) const {
    return token_.kind == PatternToken::Kind::punctuation && token_.text == punctuation;
  }
  /// True when the current token is this word.
  bool is_word(std::string_view word) const { return token_.kind == PatternToken::Kind::word && token_.text == word; }
  /// Takes the punctuation if it is next.
  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);
  /// Ends the current word before its modifiers, which are tokens of their own then.
  void cut_modifiers();
  /// The character after the current token, spaces skipped.
  char next_character() const;

  /// Takes the text up to the parenthesis that closes one already taken, and that parenthesis.
  std::string_view take_balanced();
  /// Takes the raw text up to `close` on the same line, and that character.
  std::string_view take_until(char close);

  /// True when all of the text is one word, as a target is written.
  static bool is_one_word(std::string_view text);
  /// The word before its modifiers: `conv.used_once.is` is one word.
  static std::string_view without_modifiers(std::string_view word);

  [[noreturn]] void fail(const std::string& expected) const;
  [[noreturn]] void fail_at(std::size_t at, const std::string& message) const;

 private:
  void advance();
  void skip_space();
  bool goes_on(std::size_t at) const;
  static std::size_t word_end(std::string_view text, std::size_t at);
  std::size_t number_end(std::size_t at) const;
  std::size_t string_end(std::size_t at) const;

  std::string_view text_;
  std::size_t next_;  // where the token after the current one starts
  int depth_ = 0;     // open brackets before `next_`
  PatternToken token_;
};

}  // namespace fx::internal
