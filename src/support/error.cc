#include <fxgraph/support/error.h>

#include <array>
#include <utility>

namespace fx {

namespace {

constexpr std::array<std::string_view, 9> kKindNames = {
    "invalid_argument", "syntax", "lint", "not_found", "unsupported", "execution", "trace", "io", "mismatch"};

std::string located(const std::string& message, const SourceLocation& location) {
  const std::string place = location.str();
  return place.empty() ? message : place + ": " + message;
}

/// Mistakes of syntax quote the text, whatever is in it: control characters are written out, so that it is one line.
std::string one_line(ErrorKind kind, const std::string& message) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string line;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (kind != ErrorKind::syntax || (byte >= 0x20 && byte != 0x7f)) {
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else {
      line += std::string("\\x") + kDigits[byte >> 4] + kDigits[byte & 15];
    }
  }
  return line;
}

}  // namespace

std::string_view to_string(ErrorKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::string SourceLocation::str() const {
  std::string place = file;
  if (known()) {
    if (place.empty()) place = "<text>";
    place += ":" + std::to_string(line);
    if (column > 0) place += ":" + std::to_string(column);
  }
  return place;
}

Error::Error(ErrorKind kind, const std::string& message, std::string node, SourceLocation location)
    : std::runtime_error(located(one_line(kind, message), location)),
      kind_(kind),
      message_(one_line(kind, message)),
      node_(std::move(node)),
      location_(std::move(location)) {}

}  // namespace fx
