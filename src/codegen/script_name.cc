#include <fxgraph/codegen/script_name.h>

#include <algorithm>
#include <array>

#include <fxgraph/ir/target.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

// In quotes these end the name, or are no text that the reader takes.
bool can_be_written(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

std::string in_quotes(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte != 0x7f) {
      text += c;
    } else {
      text += std::string("\\x") + kDigits[byte >> 4] + kDigits[byte & 15];
    }
  }
  return "'" + text + "'";
}

}  // namespace

std::string script_name(std::string_view name) {
  if (!std::ranges::all_of(name, can_be_written)) {
    throw Error(ErrorKind::unsupported,
                "cannot write the attribute " + in_quotes(name) +
                    " as TorchScript: files cannot say all characters of its name; rename it, in ASCII without quotes");
  }
  static constexpr std::array<std::string_view, 37> kTaken = {
      "False",    "None",   "True",     "and",  "as",    "assert", "async",    "await", "break",   "class",
      "continue", "def",    "del",      "elif", "else",  "except", "finally",  "for",   "forward", "from",
      "global",   "if",     "import",   "in",   "is",    "lambda", "nonlocal", "not",   "or",      "pass",
      "raise",    "return", "training", "try",  "while", "with",   "yield"};
  std::string result(name);
  const bool is_of_classes = name.starts_with("__") && name.ends_with("__");  // __annotations__, __parameters__
  if (is_of_classes || std::binary_search(kTaken.begin(), kTaken.end(), name)) result += '_';
  return result;
}

std::string script_path(std::string_view path) {
  std::string written;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t dot = std::min(path.find('.', at), path.size());
    written += (at ? "." : "") + script_name(path.substr(at, dot - at));
    at = dot + 1;
  }
  return written;
}

std::string script_variable(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kCalled = {"annotate",   "bool",  "complex", "float", "int",
                                                               "isinstance", "print", "range",   "str",   "torch"};
  std::string result = to_identifier(text);
  if (std::ranges::binary_search(kCalled, result)) result += '_';
  return result;
}

}  // namespace fx::internal
