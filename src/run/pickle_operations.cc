#include <fxgraph/run/pickle_operations.h>

#include <algorithm>
#include <iterator>

namespace fx::internal {

const PickleOperation* find_pickle_operation(unsigned char code) {
  using Kind = PickledKind;
  static constexpr Kind kNothing = Kind::mark;
  static constexpr PickleOperation kKnown[] = {
      {'\x80', 0, kNothing, 1},               // PROTO
      {')', 0, Kind::tuple, 0},               // EMPTY_TUPLE
      {']', 0, Kind::list, 0},                // EMPTY_LIST
      {'}', 0, Kind::dict, 0},                // EMPTY_DICT
      {'(', 0, kNothing, 0},                  // MARK
      {'q', 0, kNothing, 1},                  // BINPUT
      {'r', 0, kNothing, 4},                  // LONG_BINPUT
      {'h', 0, kNothing, 1},                  // BINGET
      {'j', 0, kNothing, 4},                  // LONG_BINGET
      {'c', 0, Kind::global, kTwoLines},      // GLOBAL
      {'Q', 1, Kind::storage, 0},             // BINPERSID
      {'R', 2, Kind::object, 0},              // REDUCE
      {'b', 1, kNothing, 0},                  // BUILD
      {'\x81', 2, Kind::object, 0},           // NEWOBJ
      {'t', kToMark, Kind::tuple, 0},         // TUPLE
      {'\x85', 1, Kind::tuple, 0},            // TUPLE1
      {'\x86', 2, Kind::tuple, 0},            // TUPLE2
      {'\x87', 3, Kind::tuple, 0},            // TUPLE3
      {'N', 0, Kind::other, 0},               // NONE
      {'\x88', 0, Kind::other, 0},            // NEWTRUE
      {'\x89', 0, Kind::other, 0},            // NEWFALSE
      {'J', 0, Kind::integer, 4},             // BININT
      {'K', 0, Kind::integer, 1},             // BININT1
      {'M', 0, Kind::integer, 2},             // BININT2
      {'\x8a', 0, Kind::integer, kCounted1},  // LONG1
      {'G', 0, Kind::other, 8},               // BINFLOAT
      {'X', 0, Kind::text, kCounted4},        // BINUNICODE
      {'U', 0, Kind::text, kCounted1},        // SHORT_BINSTRING
      {'T', 0, Kind::text, kCounted4},        // BINSTRING
      {'a', 1, kNothing, 0},                  // APPEND
      {'s', 2, kNothing, 0},                  // SETITEM
      {'e', kToMark, kNothing, 0},            // APPENDS
      {'u', kToMark, kNothing, 0},            // SETITEMS
      {'.', 1, kNothing, 0},                  // STOP
  };
  const auto* found = std::ranges::find(
      kKnown, code, [](const PickleOperation& each) { return static_cast<unsigned char>(each.code); });
  return found == std::end(kKnown) ? nullptr : found;
}

std::optional<std::uint64_t> element_bytes(std::string_view storage) {
  struct Row {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr Row kRows[] = {
      {"FloatStorage", 4},       {"DoubleStorage", 8},       {"HalfStorage", 2},
      {"BFloat16Storage", 2},    {"LongStorage", 8},         {"IntStorage", 4},
      {"ShortStorage", 2},       {"CharStorage", 1},         {"ByteStorage", 1},
      {"BoolStorage", 1},        {"QInt8Storage", 1},        {"QUInt8Storage", 1},
      {"QInt32Storage", 4},      {"QUInt4x2Storage", 1},     {"QUInt2x4Storage", 1},
      {"UntypedStorage", 1},     {"ComplexFloatStorage", 8}, {"ComplexDoubleStorage", 16},
      {"ComplexHalfStorage", 4},
  };
  const auto* row = std::ranges::find(kRows, storage.substr(storage.rfind('.') + 1), &Row::name);
  return row == std::end(kRows) ? std::nullopt : std::optional(row->bytes);
}

}  // namespace fx::internal
