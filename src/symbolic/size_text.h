// Sizes and conditions as people and Python write them: `2*h + (w - 1)//4`, `h >= 2 and not w == 1`.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include <fxgraph/symbolic/size_expr.h>

namespace fx {

/// A name at the beginning of a text.
struct NameInText {
  std::size_t length;  ///< how long it is
  SizeExpr size;       ///< what it stands for
};
/// Finds the name that a text begins with; nothing where there is none.
using NameReader = std::function<std::optional<NameInText>(std::string_view text)>;

inline constexpr std::size_t kLongestSizeText = 20000;  ///< in characters

/// Reads whole numbers, names, `+ - * // %`, comparisons, `and`, `or`, `not`, `min`, `max` (as `torch.sym_min`, too)
/// and brackets, with Python's precedence, from character `from` on. Nothing is simplified. Throws
/// Error(invalid_argument) that says what is missing at which column: `a number or a name is missing at column 7`.
SizeExpr read_size(std::string_view text, const NameReader& name, std::size_t from = 0);

}  // namespace fx
