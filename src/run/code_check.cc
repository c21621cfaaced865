#include <fxgraph/run/code_check.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include <fxgraph/ir/target.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

constexpr std::uint32_t kMostBrackets = 512;

[[noreturn]] void refuse_code(const std::string& why) { throw Error(ErrorKind::io, why + "; save it again"); }

// LibTorch takes `name = value` for a constant, and reads the type that is not there.
void check_statement_of_class(std::string_view line) {
  static constexpr std::string_view kLists[] = {"__parameters__", "__buffers__", "__forward_pre_hooks__",
                                                "__forward_hooks__"};
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return;
  std::string_view name = line.substr(0, equals);
  while (name.ends_with(' ')) name.remove_suffix(1);
  if (is_identifier(name) && std::ranges::find(kLists, name) == std::end(kLists))
    refuse_code("a class in its code sets '" + std::string(name) + "' without a type");
}

}  // namespace

void check_nesting(std::string_view text) {
  std::uint32_t depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == '\\') ++i;
      if (c == quote || c == '\n') quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '(' || c == '[' || c == '{') {
      if (++depth > kMostBrackets)
        refuse_code("a text of it has more than " + std::to_string(kMostBrackets) + " brackets in each other");
    } else if ((c == ')' || c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

void check_code(std::string_view text) {
  check_nesting(text);
  std::size_t inner = 0;  // how far the statements of the class are indented; 0: none is open
  bool is_first = false, is_enum = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t indent = line.find_first_not_of(" \t\r");
    if (indent == std::string_view::npos) continue;
    if (line.substr(indent).starts_with("class ")) {
      is_first = true;
      is_enum = line.find("(Enum)") != std::string_view::npos;  // whose names have values alone
      inner = 0;
      continue;
    }
    if (is_first) inner = indent;
    is_first = false;
    if (inner > 0 && indent == 0) inner = 0;
    if (inner > 0 && indent == inner && !is_enum) check_statement_of_class(line.substr(indent));
  }
}

}  // namespace fx
