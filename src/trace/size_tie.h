// SizeTie: a size of one input as an expression of others': `2 * x[0] + 1`, `x[0] * x[1]`, `(x[2] + 15) // 16`.
//
// Where one dimension cannot vary without others, what it may be of them is listed by the sizes of the examples
// (pair_ties, ties_of_one); the search tells by samples which of it is right (trace/size_ties.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fx::internal {

/// (factor · a + offset) // divisor, where `a` is a group's size, or the sum or product of two. Each of the two may be
/// divided before.
struct SizeTie {
  std::vector<std::uint32_t> of;  ///< one group or two
  bool is_product = false;        ///< of the two
  std::int64_t factor = 1, offset = 0, divisor = 1;
  std::int64_t part = 1, part_offset = 0;  ///< each is (size + part_offset) // part

  /// What it is for these sizes of the groups.
  std::int64_t value(const std::vector<std::int64_t>& sizes) const;
  /// In words, by the names of the groups.
  std::string str(const std::function<std::string(std::uint32_t)>& name) const;

  /// Puts it together of what is given for sizes and numbers; `combine` is called with add, mul or floordiv.
  enum class Op : std::uint8_t { add, mul, floordiv };
  template <typename Value, typename Number, typename Combine>
  Value build(const std::function<Value(std::uint32_t)>& size_of, Number&& number, Combine&& combine) const {
    const auto with = [&](Op op, Value a, std::int64_t b, std::int64_t neutral) {
      return b == neutral ? a : combine(op, a, number(b));
    };
    const auto part_of = [&](std::uint32_t group) {
      return with(Op::floordiv, with(Op::add, size_of(group), part_offset, 0), part, 1);
    };
    Value result = part_of(of.front());
    if (of.size() > 1) result = combine(is_product ? Op::mul : Op::add, result, part_of(of.back()));
    return with(Op::floordiv, with(Op::add, with(Op::mul, result, factor, 1), offset, 0), divisor, 1);
  }
};

/// A group and its size in the examples.
struct SizedGroup {
  std::uint32_t group;
  std::int64_t size;
};

/// What a size may be of two others, neither of which varies alone: k·a·b + c, a + b + c.
std::vector<SizeTie> pair_ties(std::int64_t size, SizedGroup a, SizedGroup b);
/// What it may be of an image's height and width: k·(h // s)·(w // s) + c, rounded down or up.
std::vector<SizeTie> area_ties(std::int64_t size, SizedGroup height, SizedGroup width);
/// k·n + c, for an n that does not vary alone.
std::vector<SizeTie> affine_ties(std::int64_t size, SizedGroup of);
/// (n + c) // k: by the plainest first.
std::vector<SizeTie> quotient_ties(std::int64_t size, SizedGroup of);

}  // namespace fx::internal
