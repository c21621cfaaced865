// Inline parts of ir/argument.h: how containers and slots are laid out. Included from there only.
#pragma once

#include <atomic>

#include <fxgraph/ir/argument.h>

namespace fx {
namespace internal {

/// An argument with its place in the use list of the node that it names. Slots of one block are contiguous, so the
/// block and from it the user are found by the slot's index. Links are meaningful only while the slot holds a node and
/// its block is attached to one.
struct Slot {
  Argument value;
  Slot* next = nullptr;
  Slot* previous = nullptr;

  ArgumentBlock& block();
  const ArgumentBlock& block() const;
  Node* user() const;
  bool is_first_use() const { return value.flags_ & Argument::kFirstUse; }
};

/// The elements of a container, or all arguments of a node: a header, then `size` slots.
/// Free-standing blocks are on the heap and counted; blocks attached to a node are in its graph's arena.
struct alignas(16) ArgumentBlock {
  Node* user = nullptr;  // null: free-standing
  std::uint32_t size = 0;
  std::atomic<std::uint32_t> references{0};  // free-standing only

  Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
  const Slot* slots() const { return reinterpret_cast<const Slot*>(this + 1); }
  static std::size_t bytes(std::size_t size) { return sizeof(ArgumentBlock) + size * sizeof(Slot); }
};

static_assert(sizeof(Slot) == 32 && sizeof(ArgumentBlock) == 16);

inline ArgumentBlock& Slot::block() { return reinterpret_cast<ArgumentBlock*>(this - value.index_)[-1]; }
inline const ArgumentBlock& Slot::block() const {
  return reinterpret_cast<const ArgumentBlock*>(this - value.index_)[-1];
}
inline Node* Slot::user() const { return block().user; }

}  // namespace internal

inline void Argument::swap(Argument& other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(flags_, other.flags_);
  std::swap(payload_, other.payload_);
}

// What is no container owns nothing, and is copied as it is.
inline Argument& Argument::operator=(Argument&& other) noexcept {
  if (is_container() || other.is_container()) [[unlikely]] {
    Argument taken(std::move(other));
    swap(taken);
    return *this;
  }
  kind_ = other.kind_;
  payload_ = other.payload_;
  return *this;
}

inline Argument& Argument::operator=(const Argument& other) {
  if (is_container() || other.is_container()) [[unlikely]]
    return *this = Argument(other);
  kind_ = other.kind_;
  payload_ = other.payload_;
  return *this;
}

inline ArgumentSpan Argument::elements() const {
  if (!is_container()) return {};
  return ArgumentSpan(&payload_.block->slots()->value, payload_.block->size, sizeof(internal::Slot));
}

template <typename Visit>
void for_each_node(const Argument& argument, Visit&& visit) {
  if (Node* node = argument.node_or_null()) {
    visit(*node);
  } else if (argument.is_container()) {
    for (const Argument& element : argument.elements()) for_each_node(element, visit);
  }
}

}  // namespace fx

template <>
struct std::hash<fx::Argument> {
  std::size_t operator()(const fx::Argument& argument) const { return argument.hash(); }
};
