#include <fxgraph/run/pickle_check.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fxgraph/run/code_check.h>
#include <fxgraph/run/pickle_operations.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using internal::element_bytes;
using internal::kCounted1;
using internal::kToMark;
using internal::kTwoLines;
using Kind = internal::PickledKind;
using Operation = internal::PickleOperation;

constexpr std::uint32_t kDeepest = 512;  // of values inside of values: LibTorch destroys and visits them recursively

/// In one line, whatever names the file gives.
[[noreturn]] void refuse(std::string why) {
  std::ranges::replace_if(
      why, [](unsigned char letter) { return letter < ' '; }, '?');
  throw Error(ErrorKind::io, why + "; save it again");
}

/// What is known of a value.
struct Value {
  Kind kind = Kind::mark;
  std::size_t begin = 0;       ///< in the output
  std::int64_t number = 0;     ///< of an integer, or the elements of a storage
  std::string_view text{};     ///< of a text or a global, which has a dot between module and name
  std::uint32_t contents = 0;  ///< of a container and a tensor: its place in the table
};

class Machine {
 public:
  Machine(const std::string& pickle, const MemorySize& memory) : in_(pickle), memory_(memory) {}

  std::string run() {
    while (!stopped_) {
      if (at_ == in_.size()) refuse("its pickle is cut short");
      step(static_cast<unsigned char>(in_[at_]));
    }
    check_depth();
    return std::move(out_);
  }

 private:
  std::uint64_t number(std::size_t at, std::size_t bytes) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(in_[at + i])) << (8 * i);
    return value;
  }

  /// How many bytes the operation has, and where in it its own begin.
  std::pair<std::size_t, std::size_t> extent(const Operation& operation) const {
    const std::size_t left = in_.size() - at_;
    std::size_t head = 1, size = 1;
    if (operation.bytes == kTwoLines) {
      const std::size_t first = in_.find('\n', at_);
      const std::size_t second = first == std::string::npos ? first : in_.find('\n', first + 1);
      size = second == std::string::npos ? left + 1 : second + 1 - at_;
    } else if (operation.bytes < 0) {
      head += operation.bytes == kCounted1 ? 1 : 4;
      size = head > left ? head : head + number(at_ + 1, head - 1);
    } else {
      size += static_cast<std::size_t>(operation.bytes);
    }
    if (size > left) refuse("its pickle is cut short");
    return {size, head};
  }

  void step(unsigned char code) {
    const Operation* const found = internal::find_pickle_operation(code);
    if (!found) refuse("its pickle has the operation " + std::to_string(code) + ", which is not read");
    const Operation& operation = *found;
    const auto [size, head] = extent(operation);
    const std::string_view own = std::string_view(in_).substr(at_ + head, size - head);
    at_ += size;
    switch (code) {
      case '(': stack_.push_back({Kind::mark, out_.size()}); break;
      case 'q':
      case 'r': remember(number(at_ - own.size(), own.size())); break;
      case 'h':
      case 'j': recall(number(at_ - own.size(), own.size())); break;
      case 'a': return spell_out(1, 'e');
      case 's': return spell_out(2, 'u');
      case 'R':
      case 0x81: call(); break;
      case 'b': build(); break;
      case 'Q': refer(); break;
      default: take_and_make(operation, own);
    }
    out_.append(in_, at_ - size, size);
  }

  void take_and_make(const Operation& operation, std::string_view own) {
    std::vector<Value> taken = operation.popped == kToMark ? take_to_mark() : take(operation.popped);
    if (operation.code == '.') {
      if (!stack_.empty()) refuse("its pickle ends with more than one value");
      root_ = taken.front();
      stopped_ = true;
    } else if (operation.popped == kToMark && operation.made == Kind::mark) {
      add(taken);
    } else if (operation.made != Kind::mark) {
      Value value{operation.made, taken.empty() ? out_.size() : begin_};
      value.text = own;
      if (operation.made == Kind::integer) value.number = signed_number(own);
      if (operation.made == Kind::tuple || operation.made == Kind::list || operation.made == Kind::dict)
        value.contents = hold(taken);
      stack_.push_back(value);
    }
  }

  static std::int64_t signed_number(std::string_view bytes) {
    if (bytes.size() > 8) refuse("its pickle has a number of more than 64 bits");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    const bool is_signed = bytes.size() > 2;  // BININT1 and BININT2 are not
    const std::size_t unused = 64 - 8 * bytes.size();
    return is_signed ? static_cast<std::int64_t>(value << unused) >> unused : static_cast<std::int64_t>(value);
  }

  // ── The stack ─────────────────────────────────────────────────────────────────────────────────────────────────────

  Value& top() {
    if (stack_.empty() || stack_.back().kind == Kind::mark) refuse("its pickle takes a value that is not there");
    return stack_.back();
  }

  std::vector<Value> take(int count) {
    std::vector<Value> taken(static_cast<std::size_t>(count));
    for (std::size_t i = taken.size(); i-- > 0;) {
      taken[i] = top();
      stack_.pop_back();
    }
    if (!taken.empty()) begin_ = taken.front().begin;
    return taken;
  }

  std::vector<Value> take_to_mark() {
    std::size_t mark = stack_.size();
    while (mark > 0 && stack_[mark - 1].kind != Kind::mark) --mark;
    if (mark == 0) refuse("its pickle takes values down to a mark that is not there");
    std::vector<Value> taken(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    begin_ = stack_[mark - 1].begin;
    stack_.resize(mark - 1);
    return taken;
  }

  void remember(std::uint64_t place) {
    if (place >= in_.size()) refuse("its pickle remembers more values than it has");
    const Value value = top();
    if (place >= memo_.size()) memo_.resize(place + 1);
    memo_[place] = value;
  }

  void recall(std::uint64_t place) {
    if (place >= memo_.size() || memo_[place].kind == Kind::mark)
      refuse("its pickle takes a remembered value that is not there");
    Value value = memo_[place];
    value.begin = out_.size();
    stack_.push_back(value);
  }

  // One value for a list, or a key and a value for a dict: a mark before them, and the operation for many.
  void spell_out(int values, char code) {
    const std::vector<Value> taken = take(values);
    out_.insert(taken.front().begin, 1, '(');
    out_ += code;
    add(taken);
  }

  // ── What contains what ────────────────────────────────────────────────────────────────────────────────────────────

  std::uint32_t hold(std::vector<Value> parts) {  // which may lie in the table
    contents_.emplace_back();
    for (const Value& part : parts) put_into(static_cast<std::uint32_t>(contents_.size() - 1), part);
    return static_cast<std::uint32_t>(contents_.size() - 1);
  }

  static bool is_container(Kind kind) { return kind >= Kind::tuple && kind <= Kind::object; }

  void put_into(std::uint32_t container, const Value& part) { contents_[container].parts.push_back(part); }

  void add(const std::vector<Value>& parts) {
    const Value& to = top();
    if (to.kind != Kind::list && to.kind != Kind::dict && to.kind != Kind::object)
      refuse("its pickle adds to what is neither a list nor a dict");
    if (to.kind == Kind::dict && parts.size() % 2 != 0) refuse("its pickle has a key without a value");
    for (const Value& part : parts) put_into(to.contents, part);
  }

  // Containers first that others contain: each is as deep as the deepest of its parts, and one more.
  void check_depth() {
    if (!is_container(root_.kind)) return;
    struct Visit {
      std::uint32_t container;
      std::size_t next;
    };
    std::vector<Visit> path = {{root_.contents, 0}};
    contents_[root_.contents].is_open = true;
    while (!path.empty()) {
      auto& [container, next] = path.back();
      Contents& now = contents_[container];
      if (next == now.parts.size()) {
        now.is_open = false;
        now.is_done = true;
        if (now.depth > kDeepest)
          refuse("its values lie in each other more than " + std::to_string(kDeepest) + " deep");
        path.pop_back();
        if (!path.empty()) {
          Contents& outer = contents_[path.back().container];
          outer.depth = std::max(outer.depth, now.depth + 1);
        }
        continue;
      }
      const Value& part = now.parts[next++];
      if (!is_container(part.kind)) continue;
      Contents& inner = contents_[part.contents];
      if (inner.is_open) refuse("a value of its pickle contains itself");
      if (inner.is_done) {
        now.depth = std::max(now.depth, inner.depth + 1);
        continue;
      }
      inner.is_open = true;
      path.push_back({part.contents, 0});
    }
  }

  // ── Tensors ───────────────────────────────────────────────────────────────────────────────────────────────────────

  const std::vector<Value>& parts_of(const Value& tuple, const char* what) const {
    if (tuple.kind != Kind::tuple) refuse(std::string("its pickle has ") + what + " that is no tuple");
    return contents_[tuple.contents].parts;
  }

  static std::string name_of(const Value& global) {
    std::string name(global.text.substr(0, global.text.size() - 1));
    std::ranges::replace(name, '\n', '.');
    return name;
  }

  // ('storage', torch.FloatStorage, 'key', 'cpu', elements)
  void refer() {
    const std::vector<Value> taken = take(1);
    const std::vector<Value>& parts = parts_of(taken.front(), "a reference to memory");
    const bool fits = parts.size() == 5 && parts[0].text == "storage" && parts[1].kind == Kind::global &&
                      parts[2].kind == Kind::text && parts[3].kind == Kind::text && parts[4].kind == Kind::integer;
    if (!fits) refuse("its pickle refers to something else than memory");
    const std::string type = name_of(parts[1]), key(parts[2].text);
    const std::optional<std::uint64_t> each = element_bytes(type);
    if (!each) refuse("its pickle has memory of the type " + type + ", which is not known");
    const std::int64_t elements = parts[4].number;
    const std::optional<std::uint64_t> bytes = memory_(key);
    if (elements < 0 || (elements > 0 && (!bytes || static_cast<std::uint64_t>(elements) > *bytes / *each)))
      refuse("a tensor's memory '" + key + "' is to have " + std::to_string(elements) + " elements, and has " +
             std::to_string(bytes ? *bytes / *each : 0));
    const auto [known, is_new] = memory_sizes_.emplace(key, static_cast<std::uint64_t>(elements) * *each);
    if (!is_new && known->second != static_cast<std::uint64_t>(elements) * *each)
      refuse("a tensor's memory '" + key + "' is to have two sizes");
    Value value{Kind::storage, begin_};
    value.number = elements;
    stack_.push_back(value);
  }

  void call() {
    const std::vector<Value> taken = take(2);
    if (taken[0].kind != Kind::global) refuse("its pickle calls what is no function or class");
    const std::string name = name_of(taken[0]);
    // `Color(1)`: LibTorch looks the value up among those of the class.
    const bool is_value = taken[1].kind == Kind::integer || taken[1].kind == Kind::text || taken[1].kind == Kind::other;
    if (is_value && name.starts_with("__torch__.")) {
      stack_.push_back(Value{Kind::other, begin_});
      return;
    }
    const std::vector<Value>& arguments = parts_of(taken[1], "arguments");
    Value value{Kind::object, begin_};
    if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_qtensor") {
      value.kind = Kind::tensor;
      const std::vector<std::int64_t> sizes = check_tensor(arguments);
      if (name == "torch._utils._rebuild_qtensor") check_scales(arguments, sizes);
      value.contents = static_cast<std::uint32_t>(sizes_.size());
      sizes_.push_back(sizes);
    } else {
      for (const Value& argument : arguments) {
        if (argument.kind == Kind::text) check_nesting(argument.text);
      }
      value.contents = hold(arguments);
    }
    stack_.push_back(value);
  }

  std::vector<std::int64_t> numbers_of(const Value& tuple, const char* what) const {
    std::vector<std::int64_t> numbers;
    for (const Value& part : parts_of(tuple, what)) {
      if (part.kind != Kind::integer || part.number < 0)
        refuse(std::string("a tensor has ") + what + " that are no positive numbers");
      numbers.push_back(part.number);
    }
    return numbers;
  }

  // (memory, offset, sizes, strides, …)
  std::vector<std::int64_t> check_tensor(const std::vector<Value>& arguments) const {
    if (arguments.size() < 6 || arguments[0].kind != Kind::storage || arguments[1].kind != Kind::integer)
      refuse("its pickle makes a tensor of something else than memory");
    const std::vector<std::int64_t> sizes = numbers_of(arguments[2], "sizes"),
                                    strides = numbers_of(arguments[3], "strides");
    if (sizes.size() != strides.size()) refuse("a tensor has other numbers of sizes and strides");
    std::int64_t last = arguments[1].number, numel = 1;
    bool overflows = last < 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::int64_t step = 0;
      overflows = overflows || __builtin_mul_overflow(numel, sizes[i], &numel) ||
                  (sizes[i] > 0 && (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
                                    __builtin_add_overflow(last, step, &last)));
    }
    const bool is_inside = numel == 0 ? arguments[1].number <= arguments[0].number : last < arguments[0].number;
    if (overflows || !is_inside)
      refuse("a tensor reaches outside of its memory, which has " + std::to_string(arguments[0].number) + " elements");
    return sizes;
  }

  // (…, (scheme, scale, zero point)) or (…, (scheme, scales, zero points, axis))
  void check_scales(const std::vector<Value>& arguments, const std::vector<std::int64_t>& sizes) const {
    const std::vector<Value>& parameters = parts_of(arguments[4], "the parameters of a quantized tensor");
    if (parameters.size() < 4) return;
    const Value &scales = parameters[1], &zero_points = parameters[2], &axis = parameters[3];
    const bool fits = scales.kind == Kind::tensor && zero_points.kind == Kind::tensor && axis.kind == Kind::integer &&
                      axis.number >= 0 && axis.number < static_cast<std::int64_t>(sizes.size());
    const auto is_along = [&](const Value& tensor) {
      return sizes_[tensor.contents] == std::vector<std::int64_t>{sizes[static_cast<std::size_t>(axis.number)]};
    };
    if (!fits || !is_along(scales) || !is_along(zero_points))
      refuse("a quantized tensor has not as many scales and zero points as channels");
  }

  // LibTorch calls the class below with the state.
  void build() {
    const std::vector<Value> taken = take(1);
    Value& object = top();
    if (object.kind != Kind::object) refuse("its pickle gives a state to what is no object");
    put_into(object.contents, taken.front());
  }

  struct Contents {
    std::vector<Value> parts;
    std::uint32_t depth = 0;
    bool is_open = false, is_done = false;
  };

  const std::string& in_;
  const MemorySize& memory_;
  std::string out_;
  std::size_t at_ = 0, begin_ = 0;  // begin_: of what was taken last
  bool stopped_ = false;
  Value root_;
  std::vector<Value> stack_, memo_;
  std::vector<Contents> contents_;
  std::unordered_map<std::string, std::uint64_t> memory_sizes_;  // in bytes, by key; look-up only
  std::vector<std::vector<std::int64_t>> sizes_;                 // of tensors
};

}  // namespace

std::string checked_pickle(const std::string& pickle, const MemorySize& memory) {
  return Machine(pickle, memory).run();
}

}  // namespace fx
