#include <fxgraph/cli/torch/samples.h>

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/support/output_file.h>

namespace fx::cli {

namespace {

[[noreturn]] void refuse_samples(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

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

c10::IValue unpickle_file(std::istream& file) {
  caffe2::serialize::PyTorchStreamReader archive(&file);
  const auto [bytes, size] = archive.getRecord("data.pkl");
  const std::string pickle = without_single_appends({static_cast<const char*>(bytes.get()), size});
  std::size_t at = 0;
  torch::jit::Unpickler unpickler(
      [&](char* to, std::size_t wanted) {
        const std::size_t given = std::min(wanted, pickle.size() - at);
        std::memcpy(to, pickle.data() + at, given);
        at += given;
        return given;
      },
      nullptr, nullptr, [&](const std::string& name) { return std::get<0>(archive.getRecord("data/" + name)); },
      c10::nullopt);
  return unpickler.parse_ivalue();
}

std::vector<c10::IValue> elements_of_pickle(const c10::IValue& value, const std::string& path, const char* what) {
  if (value.isTensor()) return {value};
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (!value.isList()) refuse_samples(path + ": holds a " + value.tagKind() + ", not " + what);
  return value.toListRef().vec();
}

/// What the file holds, taken apart.
std::vector<c10::IValue> read_elements(const std::string& path, const char* what, const char* cure) {
  if (std::filesystem::is_directory(path)) throw Error(ErrorKind::io, path + ": is a folder, not a file of " + what);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::io, path + ": cannot be read");
  try {
    return elements_of_pickle(unpickle_file(file), path, what);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refuse_samples(path + ": is no file of " + what + " (" + first_line(error) + "): write " + cure +
                   " with torch.save");
  }
}

/// A list with the type that programs have for it: Python's file does not say.
c10::IValue typed(const c10::IValue& value) {
  if (!value.isList() || value.isTensorList()) return value;
  const std::vector<c10::IValue> elements = value.toListRef().vec();
  const auto all = [&](auto&& is) { return !elements.empty() && std::ranges::all_of(elements, is); };
  const auto list_of = [&](auto list) {
    using Element = typename decltype(list)::value_type;
    for (const c10::IValue& element : elements) list.push_back(element.to<Element>());
    return c10::IValue(std::move(list));
  };
  if (all([](const c10::IValue& element) { return element.isTensor(); })) return list_of(c10::List<at::Tensor>());
  if (all([](const c10::IValue& element) { return element.isInt(); })) return list_of(c10::List<std::int64_t>());
  if (all([](const c10::IValue& element) { return element.isDouble(); })) return list_of(c10::List<double>());
  if (all([](const c10::IValue& element) { return element.isBool(); })) return list_of(c10::List<bool>());
  return value;
}

}  // namespace

std::string without_single_appends(const std::string& pickle) { return Appends(pickle).spelt_out().value_or(pickle); }

std::vector<c10::IValue> read_inputs(const std::string& path) {
  std::vector<c10::IValue> inputs = read_elements(path, "inputs", "a tuple of tensors and numbers");
  for (c10::IValue& input : inputs) input = typed(input);
  return inputs;
}

void write_value(const std::string& path, const c10::IValue& value) {
  // Copies: a file keeps one dtype for each storage.
  write_file(path, [&](std::ostream& file) {
    const std::vector<char> bytes = torch::jit::pickle_save(copy_of(value));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  });
}

Samples read_samples(const std::string& path) {
  const std::vector<c10::IValue> all = read_elements(path, "samples", "a list of tensors or tuples");
  if (all.empty()) refuse_samples(path + ": holds no samples");
  Samples samples;
  for (const c10::IValue& each : all) {
    if (each.isTuple()) {
      samples.push_back(each.toTupleRef().elements().vec());
    } else if (each.isList() && !each.isTensorList()) {
      samples.push_back(each.toListRef().vec());
    } else {
      samples.push_back({each});
    }
  }
  return samples;
}

}  // namespace fx::cli
