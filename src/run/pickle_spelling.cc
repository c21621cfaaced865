#include <fxgraph/run/pickle_spelling.h>

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

namespace fx {
namespace {

/// Follows a pickle's operations: where in the output each value on the machine's stack begins.
class Appends {
 public:
  explicit Appends(const std::string& pickle) : in_(pickle) {}

  /// Nothing when an operation is not known.
  std::optional<std::string> spelt_out() {
    while (at_ < in_.size()) {
      if (!step(static_cast<unsigned char>(in_[at_]))) return std::nullopt;
    }
    return out_;
  }

 private:
  static constexpr std::size_t kMark = ~std::size_t{0};

  struct Operation {
    char code;
    int popped;  ///< values taken off the stack; kToMark: all down to the mark
    bool pushes;
    int bytes;  ///< that follow; kLine, kTwoLines, kCounted1, kCounted4
  };
  static constexpr int kToMark = -1, kTwoLines = -1, kCounted1 = -2, kCounted4 = -3;

  static const Operation* find(unsigned char code) {
    static constexpr Operation kKnown[] = {
        {'\x80', 0, false, 1},         // PROTO
        {')', 0, true, 0},             // EMPTY_TUPLE
        {']', 0, true, 0},             // EMPTY_LIST
        {'}', 0, true, 0},             // EMPTY_DICT
        {'q', 0, false, 1},            // BINPUT
        {'r', 0, false, 4},            // LONG_BINPUT
        {'h', 0, true, 1},             // BINGET
        {'j', 0, true, 4},             // LONG_BINGET
        {'c', 0, true, kTwoLines},     // GLOBAL
        {'Q', 1, true, 0},             // BINPERSID
        {'R', 2, true, 0},             // REDUCE
        {'b', 1, false, 0},            // BUILD
        {'\x81', 2, true, 0},          // NEWOBJ
        {'t', kToMark, true, 0},       // TUPLE
        {'\x85', 1, true, 0},          // TUPLE1
        {'\x86', 2, true, 0},          // TUPLE2
        {'\x87', 3, true, 0},          // TUPLE3
        {'N', 0, true, 0},             // NONE
        {'\x88', 0, true, 0},          // NEWTRUE
        {'\x89', 0, true, 0},          // NEWFALSE
        {'J', 0, true, 4},             // BININT
        {'K', 0, true, 1},             // BININT1
        {'M', 0, true, 2},             // BININT2
        {'\x8a', 0, true, kCounted1},  // LONG1
        {'G', 0, true, 8},             // BINFLOAT
        {'X', 0, true, kCounted4},     // BINUNICODE
        {'U', 0, true, kCounted1},     // SHORT_BINSTRING
        {'T', 0, true, kCounted4},     // BINSTRING
        {'e', kToMark, false, 0},      // APPENDS
        {'u', kToMark, false, 0},      // SETITEMS
        {'.', 1, false, 0},            // STOP
    };
    const auto* found =
        std::ranges::find(kKnown, code, [](const Operation& each) { return static_cast<unsigned char>(each.code); });
    return found == std::end(kKnown) ? nullptr : found;
  }

  /// How many bytes the operation at `at_` has; 0 when they are not there.
  std::size_t length(const Operation& operation) const {
    std::size_t size = 1;
    const auto byte = [&](std::size_t i) {
      return at_ + i < in_.size() ? std::size_t{static_cast<unsigned char>(in_[at_ + i])} : in_.size();
    };
    if (operation.bytes == kTwoLines) {
      const std::size_t first = in_.find('\n', at_);
      const std::size_t second = first == std::string::npos ? first : in_.find('\n', first + 1);
      return second == std::string::npos ? 0 : second + 1 - at_;
    }
    if (operation.bytes == kCounted1) {
      size += 1 + byte(1);
    } else if (operation.bytes == kCounted4) {
      size += 4 + byte(1) + (byte(2) << 8) + (byte(3) << 16) + (byte(4) << 24);
    } else {
      size += static_cast<std::size_t>(operation.bytes);
    }
    return size <= in_.size() - at_ ? size : 0;
  }

  bool step(unsigned char code) {
    if (code == 'a' || code == 's') return spell_out(code == 'a' ? 1 : 2, code == 'a' ? 'e' : 'u');
    if (code == '(') {  // MARK
      stack_.push_back({out_.size(), true});
      out_ += in_[at_++];
      return true;
    }
    const Operation* operation = find(code);
    const std::size_t size = operation ? length(*operation) : 0;
    if (!size) return false;
    std::size_t begin = out_.size();
    bool below_mark = operation->popped == kToMark;
    for (int popped = 0; below_mark || popped < operation->popped; ++popped) {
      if (stack_.empty() || (stack_.back().is_mark && !below_mark)) return false;
      begin = stack_.back().begin;
      below_mark = below_mark && !stack_.back().is_mark;
      stack_.pop_back();
    }
    out_.append(in_, at_, size);
    at_ += size;
    if (operation->pushes) stack_.push_back({begin, false});
    return true;
  }

  // One value for a list, or a key and a value for a dict: a mark before them, and the operation for many.
  bool spell_out(std::size_t values, char code) {
    if (stack_.size() <= values) return false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < values; ++i) {
      if (stack_.back().is_mark) return false;
      begin = stack_.back().begin;
      stack_.pop_back();
    }
    out_.insert(begin, 1, '(');
    out_ += code;
    ++at_;
    return true;
  }

  struct Item {
    std::size_t begin;  ///< in the output
    bool is_mark;
  };

  const std::string& in_;
  std::string out_;
  std::size_t at_ = 0;
  std::vector<Item> stack_;
};

}  // namespace

std::string without_single_appends(const std::string& pickle) { return Appends(pickle).spelt_out().value_or(pickle); }

namespace {

// Lists and dicts of anything: those of one type are written as calls of TorchScript's.
c10::IValue without_types(const c10::IValue& value) {
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& each : value.toTupleRef().elements()) elements.push_back(without_types(each));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  if (value.isList()) {
    c10::List<c10::IValue> list(c10::AnyType::get());
    for (const c10::IValue& each : value.toListRef()) list.push_back(without_types(each));
    return list;
  }
  if (!value.isGenericDict()) return value;
  const auto given = value.toGenericDict();
  c10::impl::GenericDict dict(given.keyType(), c10::AnyType::get());
  for (const auto& item : given) dict.insert(item.key(), without_types(item.value()));
  return dict;
}

}  // namespace

std::vector<char> pickled(const c10::IValue& value) {
  std::string bytes;
  torch::jit::Pickler pickler([&](const char* from, std::size_t count) { bytes.append(from, count); }, nullptr, nullptr,
                              nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(without_types(value));
  pickler.stop();
  std::vector<char> archive;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* from, std::size_t count) {
    const char* first = static_cast<const char*>(from);
    archive.insert(archive.end(), first, first + count);
    return count;
  });
  torch::jit::writeArchiveAndTensors("data", bytes.data(), bytes.size(), pickler.tensorData(), writer);
  writer.writeEndOfFile();
  return archive;
}

c10::IValue unpickled(const std::string& pickle, const PickleParts& parts) {
  const std::string bytes = without_single_appends(pickle);
  std::size_t at = 0;
  torch::jit::Unpickler unpickler(
      [&](char* to, std::size_t wanted) {
        const std::size_t given = std::min(wanted, bytes.size() - at);
        std::memcpy(to, bytes.data() + at, given);
        at += given;
        return given;
      },
      parts.type_of, parts.make, parts.memory, c10::nullopt);
  return unpickler.parse_ivalue();
}

}  // namespace fx
