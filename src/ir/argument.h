// Argument: what may stand in a node's args and kwargs.
//
// A tagged value of 16 bytes: none, a node, a number, a string, a tensor option, or a container (list, tuple, dict,
// slice) of arguments. Containers nest, at most kMaxNesting deep, and are immutable: copying one shares it.
//
//   Argument(2.0), Argument("floor"), Argument(node), Argument::list({&a, &b}), Argument::slice(0, 10, 1)
//
// Two arguments are equal when they have the same kind and the same value: 1, 1.0 and true differ, and so do 0.0 and
// -0.0, while a NaN equals itself. Nodes are equal when they are the same node.
//
// A `const Argument&` read from a node is a view into its graph, valid until that node's arguments change; a copy of it
// is independent of the graph (but for the nodes that it names).
#pragma once

#include <compare>
#include <complex>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fxgraph/ir/types.h>
#include <fxgraph/support/symbol.h>

namespace fx {

class Argument;
class ArgumentSpan;
class Node;

namespace internal {
struct ArgumentBlock;
struct GraphStorage;
struct Slot;
}  // namespace internal

/// What an argument is; the names are Python's types where it has them.
enum class ArgumentKind : std::uint8_t {
  none,
  node,
  boolean,
  integer,
  floating,
  string,
  dtype,
  device,
  layout,
  memory_format,
  ellipsis,
  opaque,  ///< a Python object known only by its text; kept and printed, never run
  list,    ///< this and what follows are containers
  tuple,
  dict,     ///< elements alternate: key, value, key, value, …
  slice,    ///< three elements: start, stop, step
  complex,  ///< two elements: real and imaginary part
};

/// Returns the kind's name in words that a reader of Python knows: `int`, `list`.
std::string_view to_string(ArgumentKind kind);

/// One value among a node's arguments; see the top of this file.
class Argument {
 public:
  using Kind = ArgumentKind;              ///< as it is asked for: `Argument::Kind::list`
  static constexpr int kMaxNesting = 64;  ///< making a container that is deeper throws Error(invalid_argument)

  constexpr Argument() noexcept {}  ///< None
  /// What C++ has for it: null is None, a pointer to a node (never null) the node, a bool itself (other types are not
  /// taken for bools), numbers and strings themselves. Unsigned integers beyond 2^63 - 1 wrap around.
  /// @{
  constexpr Argument(std::nullptr_t) noexcept {}
  Argument(Node* node) noexcept : kind_(Kind::node) { payload_.node = node; }
  Argument(Node& node) noexcept : Argument(&node) {}
  template <std::same_as<bool> Bool>  // exactly bool: a pointer is no argument
  Argument(Bool value) noexcept : kind_(Kind::boolean) {
    payload_.integer = value;
  }
  template <typename Int>
  requires(std::is_integral_v<Int> && !std::is_same_v<Int, bool> && !std::is_same_v<Int, char>) Argument(Int value)
  noexcept : kind_(Kind::integer) { payload_.integer = static_cast<std::int64_t>(value); }
  template <typename Float>
  requires std::is_floating_point_v<Float> Argument(Float value)
  noexcept : kind_(Kind::floating) { payload_.floating = static_cast<double>(value); }
  Argument(const char* text) : Argument(std::string_view(text)) {}
  Argument(const std::string& text) : Argument(std::string_view(text)) {}
  Argument(std::string_view text) : kind_(Kind::string) { payload_.integer = Symbol(text).id(); }
  Argument(DType dtype) noexcept : kind_(Kind::dtype) { payload_.integer = static_cast<std::int64_t>(dtype); }
  Argument(const Device& device) noexcept;
  Argument(const Layout& layout) noexcept : kind_(Kind::layout) { payload_.integer = layout.name.id(); }
  Argument(const MemoryFormat& format) noexcept : kind_(Kind::memory_format) { payload_.integer = format.name.id(); }
  Argument(std::complex<double> value);
  /// @}
  /// A list, so that `{{&a, &b}, 1}` reads as the arguments of `cat`. Inside braces a single argument is a list of one.
  Argument(std::initializer_list<Argument> elements);

  /// A container of these elements, copied once and shared from then on.
  /// @{
  static Argument list(ArgumentSpan elements);
  static Argument tuple(ArgumentSpan elements);
  /// @}
  /// `pairs` alternate: key, value, key, value.
  static Argument dict(ArgumentSpan pairs);
  /// A slice as in `x[start:stop:step]`; None stands for what is left out.
  static Argument slice(const Argument& start, const Argument& stop, const Argument& step = {});
  /// Python's `...`.
  static Argument ellipsis() noexcept;
  /// Something known by its text alone; see ArgumentKind::opaque.
  static Argument opaque(std::string_view text);

  /// Containers are shared, so that copies are cheap.
  /// @{
  Argument(const Argument& other) : kind_(other.kind_), payload_(other.payload_) {
    if (is_container()) share(other);
  }
  Argument(Argument&& other) noexcept : kind_(other.kind_), flags_(other.flags_), payload_(other.payload_) {
    if (is_container()) adopt(other);
  }
  Argument& operator=(const Argument& other);
  Argument& operator=(Argument&& other) noexcept;
  /// @}
  ~Argument() {
    if (flags_ & kOwnsBlock) release();
  }
  /// Exchanges values, not the slots in which they stand.
  void swap(Argument& other) noexcept;

  /// What it is; decides which of the questions below have an answer.
  Kind kind() const { return kind_; }
  /// Asks for the kind; a number is an int, float or complex, a sequence a list or tuple, a container any kind from
  /// list on.
  /// @{
  bool is_none() const { return kind_ == Kind::none; }
  bool is_node() const { return kind_ == Kind::node; }
  bool is_bool() const { return kind_ == Kind::boolean; }
  bool is_int() const { return kind_ == Kind::integer; }
  bool is_float() const { return kind_ == Kind::floating; }
  bool is_number() const { return is_int() || is_float() || kind_ == Kind::complex; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_list() const { return kind_ == Kind::list; }
  bool is_tuple() const { return kind_ == Kind::tuple; }
  bool is_sequence() const { return is_list() || is_tuple(); }
  bool is_dict() const { return kind_ == Kind::dict; }
  bool is_slice() const { return kind_ == Kind::slice; }
  bool is_container() const { return kind_ >= Kind::list; }
  /// @}

  /// The value. Asking for another kind throws Error(invalid_argument) that names both kinds.
  /// @{
  Node& node() const;
  bool as_bool() const;
  std::int64_t as_int() const;
  /// An int is also accepted.
  double as_float() const;
  /// An int or float is also accepted.
  std::complex<double> as_complex() const;
  /// Strings and opaque texts.
  Symbol as_symbol() const;
  std::string_view as_string() const { return as_symbol().view(); }
  DType as_dtype() const;
  Device as_device() const;
  Layout as_layout() const;
  MemoryFormat as_memory_format() const;
  /// @}
  /// The elements of a container, as listed at ArgumentKind; empty for anything else.
  ArgumentSpan elements() const;

  /// The node, or null when this is something else. Never throws.
  Node* node_or_null() const noexcept { return is_node() ? payload_.node : nullptr; }

  /// Same kind and same value, element by element; see the top of this file.
  friend bool operator==(const Argument& a, const Argument& b) { return a.equals(b); }
  /// Equal arguments have equal hashes; nodes count by their address, so hashes differ from run to run.
  std::size_t hash() const;

 private:
  friend struct internal::ArgumentBlock;
  friend struct internal::GraphStorage;
  friend struct internal::Slot;
  friend class Node;
  friend class Graph;

  static constexpr std::uint8_t kOwnsBlock = 1;  // holds a reference on a block of its own
  static constexpr std::uint8_t kFirstUse = 2;   // in a slot: the use that stands for its user in users()

  union Payload {
    constexpr Payload() : integer(0) {}
    Node* node;
    std::int64_t integer;
    double floating;
    internal::ArgumentBlock* block;
  };

  Argument(Kind kind, ArgumentSpan elements);
  void share(const Argument& other);
  void adopt(Argument& other) noexcept;
  void release() noexcept;
  bool equals(const Argument& other) const;
  [[noreturn]] void wrong_kind(std::string_view wanted) const;

  Kind kind_ = Kind::none;
  std::uint8_t flags_ = 0;
  std::uint32_t index_ = 0;  // in a slot: its place in its block
  Payload payload_;
};

static_assert(sizeof(Argument) == 16);

/// A read-only sequence of arguments, wherever they are stored: an initializer list, a vector, or a node's args.
/// As a parameter type it lives for the call only.
class ArgumentSpan {
 public:
  ArgumentSpan() = default;
  /// Refers to them, copies nothing; `stride` is the distance of neighbours in bytes.
  /// @{
  ArgumentSpan(std::initializer_list<Argument> arguments)
      : ArgumentSpan(arguments.begin(), arguments.size(), sizeof(Argument)) {}
  ArgumentSpan(const std::vector<Argument>& arguments)
      : ArgumentSpan(arguments.data(), arguments.size(), sizeof(Argument)) {}
  ArgumentSpan(std::span<const Argument> arguments)
      : ArgumentSpan(arguments.data(), arguments.size(), sizeof(Argument)) {}
  ArgumentSpan(const Argument* first, std::size_t size, std::size_t stride)
      : first_(first), size_(static_cast<std::uint32_t>(size)), stride_(static_cast<std::uint32_t>(stride)) {}
  /// @}

  /// Goes forward; valid as long as what the span refers to.
  class iterator {
   public:
    /// As the standard library wants it of a forward iterator.
    /// @{
    using value_type = Argument;
    using difference_type = std::ptrdiff_t;
    using reference = const Argument&;
    using pointer = const Argument*;
    using iterator_category = std::forward_iterator_tag;
    iterator() = default;
    iterator(const Argument* at, std::uint32_t stride) : at_(at), stride_(stride) {}
    reference operator*() const { return *at_; }
    pointer operator->() const { return at_; }
    iterator& operator++() {
      at_ = reinterpret_cast<const Argument*>(reinterpret_cast<const char*>(at_) + stride_);
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const iterator& other) const { return at_ == other.at_; }
    /// @}

   private:
    const Argument* at_ = nullptr;
    std::uint32_t stride_ = sizeof(Argument);
  };

  /// As of a vector; the index is not checked.
  /// @{
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Argument& operator[](std::size_t i) const { return *place(i); }
  iterator begin() const { return {first_, stride_}; }
  iterator end() const { return {place(size_), stride_}; }
  /// @}
  /// The arguments from position `from` on, which is at most size().
  ArgumentSpan subspan(std::size_t from) const { return {place(from), size_ - from, stride_}; }
  ArgumentSpan first(std::size_t count) const { return {first_, count, stride_}; }  ///< `count` is at most size()
  /// A copy that outlives the span.
  std::vector<Argument> to_vector() const { return {begin(), end()}; }

 private:
  const Argument* place(std::size_t i) const {
    return reinterpret_cast<const Argument*>(reinterpret_cast<const char*>(first_) + i * stride_);
  }

  const Argument* first_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t stride_ = sizeof(Argument);
};

/// A keyword argument.
struct NamedArgument {
  Symbol name;     ///< the keyword
  Argument value;  ///< what is passed for it
  /// Same keyword, equal value.
  friend bool operator==(const NamedArgument&, const NamedArgument&) = default;
};

/// A read-only sequence of keyword arguments; see ArgumentSpan.
class KwargSpan {
 public:
  KwargSpan() = default;
  /// Refers to them, copies nothing; `name_stride` is the distance of neighbouring names in bytes.
  /// @{
  KwargSpan(std::initializer_list<NamedArgument> kwargs) : KwargSpan(std::span(kwargs.begin(), kwargs.size())) {}
  KwargSpan(const std::vector<NamedArgument>& kwargs) : KwargSpan(std::span(kwargs)) {}
  KwargSpan(std::span<const NamedArgument> kwargs)
      : values_(kwargs.empty() ? nullptr : &kwargs[0].value, kwargs.size(), sizeof(NamedArgument)),
        names_(kwargs.empty() ? nullptr : &kwargs[0].name),
        name_stride_(sizeof(NamedArgument)) {}
  KwargSpan(const Symbol* names, std::size_t name_stride, ArgumentSpan values)
      : values_(values), names_(names), name_stride_(static_cast<std::uint32_t>(name_stride)) {}
  /// @}

  /// What iterating yields.
  struct Item {
    Symbol name;            ///< the keyword
    const Argument& value;  ///< what is passed for it
  };
  /// Goes forward, in the order in which the keywords were given.
  class iterator {
   public:
    /// As the standard library wants it of an input iterator.
    /// @{
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using reference = Item;
    using iterator_category = std::input_iterator_tag;
    iterator(const KwargSpan* span, std::size_t at) : span_(span), at_(at) {}
    Item operator*() const { return (*span_)[at_]; }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const iterator& other) const { return at_ == other.at_; }
    /// @}

   private:
    const KwargSpan* span_;
    std::size_t at_;
  };

  /// As of a vector of keywords with what is passed for them; the index is not checked.
  /// @{
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  Symbol name(std::size_t i) const {
    return *reinterpret_cast<const Symbol*>(reinterpret_cast<const char*>(names_) + i * name_stride_);
  }
  const Argument& value(std::size_t i) const { return values_[i]; }
  Item operator[](std::size_t i) const { return {name(i), values_[i]}; }
  /// @}
  /// The value of `name`, or null.
  const Argument* find(Symbol name) const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (this->name(i) == name) return &values_[i];
    }
    return nullptr;
  }
  /// The values alone, in the order of the keywords.
  ArgumentSpan values() const { return values_; }
  iterator begin() const { return {this, 0}; }     ///< iterating yields Item
  iterator end() const { return {this, size()}; }  ///< iterating yields Item
  /// A copy that outlives the span.
  std::vector<NamedArgument> to_vector() const;

 private:
  ArgumentSpan values_;
  const Symbol* names_ = nullptr;
  std::uint32_t name_stride_ = sizeof(Symbol);
};

/// Calls `visit(Node&)` for every node in `argument`, containers included, left to right; a node named twice is visited
/// twice.
template <typename Visit>
void for_each_node(const Argument& argument, Visit&& visit);

/// True when `argument` is a node, or a container of some.
bool names_nodes(const Argument& argument);

/// Rebuilds `argument` with every node `n` in it replaced by `map(n)` (FX's map_arg).
Argument map_nodes(const Argument& argument, const std::function<Argument(Node&)>& map);

/// Rebuilds `argument` with every leaf `a` that is no container replaced by `map(a)` (FX's map_aggregate).
Argument map_leaves(const Argument& argument, const std::function<Argument(const Argument&)>& map);

/// How format() writes nodes: FX marks them `%name` in calls and leaves the mark out in `return`.
enum class NodeStyle : std::uint8_t { percent, plain };

/// Appends `argument` as FX prints it, except that strings are quoted, so that the text reads back as what it was.
void format(std::string& out, const Argument& argument, NodeStyle style = NodeStyle::percent);
/// The text that format() writes.
std::string to_string(const Argument& argument, NodeStyle style = NodeStyle::percent);
/// Prints what to_string() returns.
std::ostream& operator<<(std::ostream& out, const Argument& argument);

/// Appends `value` as Python's repr writes it: the shortest text that reads back as the same double.
void format_float(std::string& out, double value);
/// Appends `text` as Python's repr writes it, in single quotes.
void format_quoted(std::string& out, std::string_view text);
}  // namespace fx

#include <fxgraph/ir/argument_inl.h>
