// The equation of einsum, `...ij,jk->...ik`, for operands of given ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fx::internal {

/// See the top of this file.
struct EinsumEquation {
  /// One for each dimension: a letter, or of those that an ellipsis stands for a negative number, counted from the
  /// right.
  using Labels = std::vector<int>;

  std::vector<Labels> operands;
  Labels output;

  /// Nothing where LibTorch refuses it for such operands.
  static std::optional<EinsumEquation> read(std::string_view equation, std::span<const std::size_t> ranks);
};

}  // namespace fx::internal
