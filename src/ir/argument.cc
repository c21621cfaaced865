#include <fxgraph/ir/argument.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <new>
#include <ostream>
#include <unordered_map>

#include <fxgraph/support/error.h>

namespace fx {

namespace {

using internal::ArgumentBlock;
using internal::Slot;

constexpr std::array<std::string_view, 17> kKindNames = {
    "None",          "node",     "bool",   "int",  "float", "str",  "dtype", "device", "layout",
    "memory_format", "Ellipsis", "object", "list", "tuple", "dict", "slice", "complex"};

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 24;

/// How deep a container nests, and how many values it holds when it is written out.
struct Extent {
  int depth = 0;
  std::uint64_t values = 1;
};

// Lists may share lists, over and over: each is looked at once.
using Extents = std::unordered_map<const Argument*, Extent>;  // by the first element; look-up only

Extent extent_of(const Argument& container, Extents& known) {
  const ArgumentSpan elements = container.elements();
  if (elements.empty()) return {1, 1};
  const auto found = known.find(&elements[0]);
  if (found != known.end()) return found->second;
  Extent extent{0, 1};
  for (const Argument& element : elements) {
    const Extent part = element.is_container() ? extent_of(element, known) : Extent();
    extent.depth = std::max(extent.depth, part.depth);
    extent.values = std::min(extent.values + part.values, kMaxValues + 1);
  }
  ++extent.depth;
  return known[&elements[0]] = extent;
}

void combine(std::size_t& seed, std::size_t value) {
  seed ^= value * 0x9E3779B97F4A7C15ull + (seed << 6) + (seed >> 2);
}

}  // namespace

std::string_view to_string(ArgumentKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

Argument::Argument(const Device& device) noexcept : kind_(Kind::device) {
  payload_.integer = static_cast<std::int64_t>(device.type.id()) | (static_cast<std::int64_t>(device.index) << 32);
}

Argument::Argument(std::complex<double> value) : Argument(Kind::complex, {value.real(), value.imag()}) {}
Argument::Argument(std::initializer_list<Argument> elements) : Argument(Kind::list, elements) {}

Argument Argument::list(ArgumentSpan elements) { return Argument(Kind::list, elements); }
Argument Argument::tuple(ArgumentSpan elements) { return Argument(Kind::tuple, elements); }

Argument Argument::dict(ArgumentSpan pairs) {
  if (pairs.size() % 2 != 0) throw Error(ErrorKind::invalid_argument, "a dict argument needs a value for every key");
  return Argument(Kind::dict, pairs);
}

Argument Argument::slice(const Argument& start, const Argument& stop, const Argument& step) {
  return Argument(Kind::slice, {start, stop, step});
}

Argument Argument::ellipsis() noexcept {
  Argument argument;
  argument.kind_ = Kind::ellipsis;
  return argument;
}

Argument Argument::opaque(std::string_view text) {
  Argument argument(text);
  argument.kind_ = Kind::opaque;
  return argument;
}

Argument::Argument(Kind kind, ArgumentSpan elements) : kind_(kind) {
  Extents known;
  std::uint64_t values = 1;
  for (const Argument& element : elements) {
    if (!element.is_container()) continue;
    const Extent extent = extent_of(element, known);
    values += extent.values;
    if (extent.depth >= kMaxNesting) {
      throw Error(ErrorKind::invalid_argument,
                  "argument containers nest more than " + std::to_string(kMaxNesting) + " deep; flatten them");
    }
    if (values > kMaxValues) {
      throw Error(ErrorKind::invalid_argument, "an argument holds more than " + std::to_string(kMaxValues) +
                                                   " values, lists that it shares written out; pass them apart");
    }
  }
  void* memory = std::malloc(ArgumentBlock::bytes(elements.size()));
  if (!memory) throw std::bad_alloc();
  auto* block = new (memory) ArgumentBlock;
  block->references = 1;
  for (const Argument& element : elements) {
    Slot* slot = new (block->slots() + block->size) Slot{element};
    slot->value.index_ = block->size++;
  }
  payload_.block = block;
  flags_ = kOwnsBlock;
}

// Copying from a free-standing argument shares its block; copying out of a graph takes the elements along.
void Argument::share(const Argument& other) {
  if (other.flags_ & kOwnsBlock) {
    payload_.block->references.fetch_add(1, std::memory_order_relaxed);
    flags_ = kOwnsBlock;
  } else {
    const ArgumentSpan elements = other.elements();
    kind_ = Kind::none;  // in case the next line throws
    Argument copy(other.kind_, elements);
    kind_ = other.kind_;
    adopt(copy);
  }
}

void Argument::adopt(Argument& other) noexcept {
  flags_ = kOwnsBlock;
  if (!(other.flags_ & kOwnsBlock)) {  // a slot inside a graph: leave it whole
    share(other);
    return;
  }
  payload_ = other.payload_;
  other.kind_ = Kind::none;
  other.flags_ = 0;
}

void Argument::release() noexcept {
  ArgumentBlock* block = payload_.block;
  if (block->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (std::uint32_t i = 0; i < block->size; ++i) block->slots()[i].~Slot();
  std::free(block);
}

void Argument::wrong_kind(std::string_view wanted) const {
  throw Error(ErrorKind::invalid_argument, "argument " + to_string(*this) + " is a " + std::string(to_string(kind_)) +
                                               ", not a " + std::string(wanted));
}

Node& Argument::node() const {
  if (!is_node()) wrong_kind("node");
  return *payload_.node;
}
bool Argument::as_bool() const {
  if (!is_bool()) wrong_kind("bool");
  return payload_.integer != 0;
}
std::int64_t Argument::as_int() const {
  if (!is_int()) wrong_kind("int");
  return payload_.integer;
}
double Argument::as_float() const {
  if (is_int()) return static_cast<double>(payload_.integer);
  if (!is_float()) wrong_kind("float");
  return payload_.floating;
}
std::complex<double> Argument::as_complex() const {
  if (kind_ != Kind::complex) return as_float();
  return {elements()[0].as_float(), elements()[1].as_float()};
}
Symbol Argument::as_symbol() const {
  if (!is_string() && kind_ != Kind::opaque) wrong_kind("str");
  return Symbol::from_id(static_cast<std::uint32_t>(payload_.integer));
}
DType Argument::as_dtype() const {
  if (kind_ != Kind::dtype) wrong_kind("dtype");
  return static_cast<DType>(payload_.integer);
}
Device Argument::as_device() const {
  if (kind_ != Kind::device) wrong_kind("device");
  return {Symbol::from_id(static_cast<std::uint32_t>(payload_.integer)),
          static_cast<std::int32_t>(payload_.integer >> 32)};
}
Layout Argument::as_layout() const {
  if (kind_ != Kind::layout) wrong_kind("layout");
  return {Symbol::from_id(static_cast<std::uint32_t>(payload_.integer))};
}
MemoryFormat Argument::as_memory_format() const {
  if (kind_ != Kind::memory_format) wrong_kind("memory_format");
  return {Symbol::from_id(static_cast<std::uint32_t>(payload_.integer))};
}

bool Argument::equals(const Argument& other) const {
  if (kind_ != other.kind_) return false;
  if (!is_container()) return payload_.integer == other.payload_.integer;  // floats by bits: see the header
  const ArgumentSpan a = elements(), b = other.elements();
  if (a.size() != b.size()) return false;
  if (!a.empty() && &a[0] == &b[0]) return true;  // shared
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) return false;
  }
  return true;
}

std::size_t Argument::hash() const {
  std::size_t seed = static_cast<std::size_t>(kind_);
  if (!is_container()) {
    combine(seed, static_cast<std::size_t>(payload_.integer));
  } else {
    for (const Argument& element : elements()) combine(seed, element.hash());
  }
  return seed;
}

std::vector<NamedArgument> KwargSpan::to_vector() const {
  std::vector<NamedArgument> copy;
  copy.reserve(size());
  for (const Item item : *this) copy.push_back({item.name, item.value});
  return copy;
}

bool names_nodes(const Argument& argument) {
  bool found = argument.is_node();
  for (const Argument& element : argument.elements()) found = found || names_nodes(element);
  return found;
}

Argument map_leaves(const Argument& argument, const std::function<Argument(const Argument&)>& map) {
  if (!argument.is_container() || argument.kind() == ArgumentKind::complex) return map(argument);
  std::vector<Argument> elements;
  elements.reserve(argument.elements().size());
  for (const Argument& element : argument.elements()) elements.push_back(map_leaves(element, map));
  switch (argument.kind()) {
    case ArgumentKind::list: return Argument::list(elements);
    case ArgumentKind::tuple: return Argument::tuple(elements);
    case ArgumentKind::dict: return Argument::dict(elements);
    default: return Argument::slice(elements[0], elements[1], elements[2]);
  }
}

Argument map_nodes(const Argument& argument, const std::function<Argument(Node&)>& map) {
  return map_leaves(argument, [&](const Argument& leaf) { return leaf.is_node() ? map(leaf.node()) : leaf; });
}

std::ostream& operator<<(std::ostream& out, const Argument& argument) { return out << to_string(argument); }

}  // namespace fx
