// The operations of pickles that LibTorch reads (protocol 2, as in Python's pickletools), as a table. Internal to
// run/pickle_check.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fx::internal {

/// What an operation makes, as far as it is told apart; `mark` stands for nothing.
enum class PickledKind : std::uint8_t {
  mark,
  integer,
  text,
  global,
  storage,
  tensor,
  tuple,
  list,
  dict,
  object,
  other
};

/// One operation: how many bytes it has, and what it does to the stack.
struct PickleOperation {
  char code;
  int popped;        ///< values taken off the stack; kToMark: all down to the mark
  PickledKind made;  ///< Kind::mark: nothing
  int bytes;         ///< that follow; kTwoLines, kCounted1, kCounted4
};
inline constexpr int kToMark = -1, kTwoLines = -1, kCounted1 = -2, kCounted4 = -3;

/// The operation of this code, or null.
const PickleOperation* find_pickle_operation(unsigned char code);

/// How many bytes an element has of the memory of this type, `torch.FloatStorage`; nothing for one that is not known.
std::optional<std::uint64_t> element_bytes(std::string_view storage);

}  // namespace fx::internal
