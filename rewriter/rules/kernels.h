// For which element types LibTorch computes an operator: what is written out in sums and products runs on types that
// the operator of that name may not have a kernel for, half precision on a CPU above all.
//
// And what some releases compute otherwise than their formulas say. All found out by calling them once, on tensors of a
// few elements. Thread-safety: any thread may ask.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <fxgraph/ir/types.h>

namespace fx::rules {

/// A set of element types.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<DType> types) {
    for (const DType type : types) add(type);
  }
  static constexpr TypeSet all() { return TypeSet(~std::uint64_t{0}); }

  constexpr void add(DType type) { bits_ |= bit(type); }
  constexpr bool contains(DType type) const { return (bits_ & bit(type)) != 0; }
  constexpr bool is_within(TypeSet other) const { return (bits_ & ~other.bits_) == 0; }
  constexpr TypeSet operator&(TypeSet other) const { return TypeSet(bits_ & other.bits_); }
  constexpr TypeSet operator|(TypeSet other) const { return TypeSet(bits_ | other.bits_); }
  friend constexpr bool operator==(TypeSet, TypeSet) = default;

 private:
  explicit constexpr TypeSet(std::uint64_t bits) : bits_(bits) {}
  static constexpr std::uint64_t bit(DType type) { return std::uint64_t{1} << static_cast<unsigned>(type); }
  std::uint64_t bits_ = 0;
};

/// True for the packets of which kernel_types() knows something: `aten::gelu`.
bool has_kernel_types(std::string_view packet);
/// The types that its result may have: those, and others where there are no numbers, of which some kernels look at no
/// type. Of has_kernel_types() only.
TypeSet result_types(std::string_view packet);
/// The types that the operator computes with and returns; it throws for all others. Of has_kernel_types() only.
TypeSet kernel_types(std::string_view packet);

/// True when gelu of an infinity is what x/2 (1 + erf(x/√2)) is of it. LibTorch 2.14's, computed in vectors, is NaN.
bool gelu_takes_infinities();
/// True when attention to nothing has the shape that the products of query, keys and values have. LibTorch 2.14's has
/// that of the query, whatever batch the others are of.
bool broadcasts_empty_attention();

}  // namespace fx::rules
