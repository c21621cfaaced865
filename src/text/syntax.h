// The lexical rules that printing and parsing share. Internal to src/text and matchers.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/node.h>

namespace fx::internal {

inline constexpr std::array<bool, 256> kNameChars = [] {
  std::array<bool, 256> table{};
  for (unsigned c = 0; c < 256; ++c) {
    table[c] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  return table;
}();

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
inline bool is_name_char(char c) { return kNameChars[static_cast<unsigned char>(c)]; }
inline bool is_name_start(char c) { return is_name_char(c) && !is_digit(c); }
inline bool is_word_char(char c) { return is_name_char(c) || c == '.'; }
inline bool is_number_char(char c) { return is_word_char(c) || c == '+' || c == '-'; }
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

/// The number of bytes at the start of `text` that make one bracketed object, `<…>`, `name.name(…)` or `b'…'`, brackets
/// and quotes inside it matched; 0 when there is none. `scanned` tells how far was looked.
std::size_t object_length(std::string_view text, std::size_t& scanned);

/// Reads a word such as `None`, `-1e-05`, `torch.float32`, `cuda:0`; false when it is no literal.
bool read_literal(std::string_view word, Argument& value);

/// True for the objects that are arguments of their own: `slice(…)`, `device(…)`, `complex(…)`, `opaque(…)`.
bool is_constructor(std::string_view name);

/// True when an opaque object of this text is read back from the bare text.
bool is_plain_object(std::string_view text);

/// True when `[target=text]` reads back, and when an annotation does without quotes.
bool is_plain_target(std::string_view text);
bool is_plain_type(std::string_view text);

/// Appends the target as FX text spells it, quoted if it must be.
void format_node_target(std::string& out, Op op, Symbol target);
/// The target that an unquoted text stands for: Python's own representations of functions become their names.
std::string_view read_target(Op op, std::string_view text, std::string& buffer);

}  // namespace fx::internal
