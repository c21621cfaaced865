// SizeTie: a size of one input as an expression of others': `2 * x[0] + 1`, `(x[2] + 15) // 16`.
//
// Written by people, in Sizes::tied(). Operators: + - * // and brackets, with Python's meaning and precedence.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fx::internal {

struct SizeTie {
  enum class Op : std::uint8_t { size, number, add, sub, mul, floordiv };
  /// An operator stands behind its operands.
  struct Part {
    Op op;
    std::int64_t number = 0;  ///< of a size: its group
  };
  std::vector<Part> parts;

  /// The groups whose sizes it is made of.
  std::vector<std::uint32_t> of() const;
  void replace(std::uint32_t group, std::uint32_t by);
  /// What it is for these sizes of the groups; -1 where something is divided by zero.
  std::int64_t value(const std::vector<std::int64_t>& sizes) const;
  /// In words, by the names of the groups.
  std::string str(const std::function<std::string(std::uint32_t)>& name) const;

  /// Puts it together of what is given for sizes and numbers.
  template <typename Value, typename Size, typename Number, typename Combine>
  Value build(Size&& size_of, Number&& number, Combine&& combine) const {
    std::vector<Value> stack;
    for (const Part& part : parts) {
      if (part.op == Op::size) {
        stack.push_back(size_of(static_cast<std::uint32_t>(part.number)));
      } else if (part.op == Op::number) {
        stack.push_back(number(part.number));
      } else {
        Value b = std::move(stack.back());
        stack.pop_back();
        stack.back() = combine(part.op, stack.back(), b);
      }
    }
    return stack.back();
  }
};

/// A dimension that follows from others.
struct DeclaredTie {
  std::uint32_t group;
  SizeTie tie;
};
/// Reads `mask[1] = x[1] + cache[1]`. `names` are those of the groups, by their numbers. Throws Error(invalid_argument)
/// that names the place.
DeclaredTie parse_tie(std::string_view text, const std::vector<std::string>& names);

}  // namespace fx::internal
