// The one family of exceptions that fxgraph throws.
//
// A failed call leaves the graph as it was. `what()` is one line that names the place, the cause and the cure; the
// parts are also there separately, so that a program can act on them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fx {

/// What went wrong, for programs that act on it.
enum class ErrorKind : std::uint8_t {
  invalid_argument,  ///< a call that its contract forbids (wrong graph, node still in use, arity)
  syntax,            ///< a text that does not parse
  lint,              ///< a graph that breaks an invariant
  not_found,         ///< a name, attribute, operator or file that does not exist
  unsupported,       ///< a program that this library cannot represent
  execution,         ///< an operator that failed while a graph ran
  trace,             ///< a program that cannot be traced symbolically
  io,                ///< a file that cannot be read or written
  mismatch,          ///< results that should be equal and are not
};

/// Returns the kind's name as it is spelt above.
std::string_view to_string(ErrorKind kind);

/// A place in a text: 1-based line and column; `file` may be empty (a string in memory).
struct SourceLocation {
  std::string file;  ///< empty for a string in memory
  /// From 1; 0 is not known.
  /// @{
  int line = 0;
  int column = 0;
  /// @}

  /// True when there is at least a line.
  bool known() const { return line > 0; }
  /// Returns `file:line:column`, leaving out what is not known.
  std::string str() const;
};

/// What every failed call throws; what() is the place and the message in one line.
class Error : public std::runtime_error {
 public:
  /// `message` says cause and cure; the place is not known.
  Error(ErrorKind kind, const std::string& message) : Error(kind, message, {}, {}) {}
  /// The same about a node of this name, or a place in a text; either may be empty.
  Error(ErrorKind kind, const std::string& message, std::string node, SourceLocation location = {});

  /// What a program decides by.
  ErrorKind kind() const { return kind_; }
  /// The message without the location.
  const std::string& message() const { return message_; }
  /// The name of the node at fault, or empty.
  const std::string& node() const { return node_; }
  /// The place in a text; not known() for errors that are not about texts.
  const SourceLocation& location() const { return location_; }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string node_;
  SourceLocation location_;
};

}  // namespace fx
