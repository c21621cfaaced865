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
    : std::runtime_error(located(message, location)),
      kind_(kind),
      message_(message),
      node_(std::move(node)),
      location_(std::move(location)) {}

}  // namespace fx
