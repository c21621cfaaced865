#include <fxgraph/torchscript/script_name.h>

#include <algorithm>
#include <array>

namespace fx::internal {

std::string script_name(std::string_view name) {
  static constexpr std::array<std::string_view, 37> kTaken = {
      "False",    "None",   "True",     "and",  "as",    "assert", "async",    "await", "break",   "class",
      "continue", "def",    "del",      "elif", "else",  "except", "finally",  "for",   "forward", "from",
      "global",   "if",     "import",   "in",   "is",    "lambda", "nonlocal", "not",   "or",      "pass",
      "raise",    "return", "training", "try",  "while", "with",   "yield"};
  std::string result(name);
  if (std::binary_search(kTaken.begin(), kTaken.end(), name)) result += '_';
  return result;
}

}  // namespace fx::internal
