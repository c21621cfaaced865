// A set of element types.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <fxgraph/ir/types.h>

namespace fx {

/// A set of element types.
class TypeSet {
 public:
  constexpr TypeSet() = default;  ///< none
  /// These.
  constexpr TypeSet(std::initializer_list<DType> types) {
    for (const DType type : types) add(type);
  }
  /// Bit i: DType i.
  explicit constexpr TypeSet(std::uint64_t bits) : bits_(bits) {}
  /// Returns every type.
  static constexpr TypeSet all() { return TypeSet(~std::uint64_t{0}); }

  /// Puts one more into it.
  constexpr void add(DType type) { bits_ |= bit(type); }
  /// True for one that is in it.
  constexpr bool contains(DType type) const { return (bits_ & bit(type)) != 0; }
  /// True when all are in the other.
  constexpr bool is_within(TypeSet other) const { return (bits_ & ~other.bits_) == 0; }
  /// As sets have them.
  /// @{
  constexpr TypeSet operator&(TypeSet other) const { return TypeSet(bits_ & other.bits_); }
  constexpr TypeSet operator|(TypeSet other) const { return TypeSet(bits_ | other.bits_); }
  constexpr TypeSet operator~() const { return TypeSet(~bits_); }
  friend constexpr bool operator==(TypeSet, TypeSet) = default;
  /// @}

 private:
  static constexpr std::uint64_t bit(DType type) { return std::uint64_t{1} << static_cast<unsigned>(type); }
  std::uint64_t bits_ = 0;
};

}  // namespace fx
