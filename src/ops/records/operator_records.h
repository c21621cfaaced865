// What is known of operators beside their schemas: one row an operator, or several that are alike.
//
// A new operator is one row, in the table of its family, and a hint for the test that draws its calls
// (tests/shapes/call_hints.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fxgraph/ops/records/cost_formulas.h>
#include <fxgraph/ops/records/no_op_forms.h>
#include <fxgraph/ops/records/operator_flags.h>

namespace fx::internal {

class SizeCall;

/// Several flags.
struct OperatorFlags {
  constexpr OperatorFlags() = default;
  constexpr OperatorFlags(OperatorFlag flag) : bits(static_cast<std::uint32_t>(flag)) {}

  constexpr bool has(OperatorFlag flag) const { return (bits & static_cast<std::uint32_t>(flag)) != 0; }
  friend constexpr OperatorFlags operator|(OperatorFlags a, OperatorFlags b) {
    a.bits |= b.bits;
    return a;
  }

  std::uint32_t bits = 0;
};
constexpr OperatorFlags operator|(OperatorFlag a, OperatorFlag b) { return OperatorFlags(a) | OperatorFlags(b); }

/// One row.
struct OperatorRecord {
  std::string_view
      names;  ///< packets, of aten where no namespace is said, overloads, of Python; those of one row are alike
  void (*sizes)(SizeCall&) = nullptr;  ///< its results and its conditions; null: others are asked
  OperatorFlags flags{};
  CostFormula cost = nullptr;        ///< null: by its traits
  const NoOpForm* no_op = nullptr;   ///< null: it never is one
  std::string_view decided_by = {};  ///< of `sizes_of_data`: the argument that, given, says the sizes instead
};

/// Calls `visit(std::string name)` for each of the row's operators: `aten::conv2d`.
template <typename Visit>
void for_each_name(const OperatorRecord& row, Visit&& visit) {
  for (std::size_t begin = 0, end = 0; end < row.names.size(); begin = end + 1) {
    end = std::min(row.names.find(' ', begin), row.names.size());
    const std::string name(row.names.substr(begin, end - begin));
    const bool is_whole = name.find("::") != name.npos || name.starts_with("builtins.") ||
                          name.starts_with("operator.") || name.starts_with("torch.");
    visit(is_whole ? name : "aten::" + name);
  }
}

/// The rows by families, and all of these.
/// @{
std::span<const OperatorRecord> pointwise_operators();
std::span<const OperatorRecord> view_operators();
std::span<const OperatorRecord> part_operators();
std::span<const OperatorRecord> reduction_operators();
std::span<const OperatorRecord> product_operators();
std::span<const OperatorRecord> window_operators();
std::span<const OperatorRecord> image_operators();
std::span<const OperatorRecord> layer_operators();
std::span<const OperatorRecord> index_operators();
std::span<const OperatorRecord> join_operators();
std::span<const OperatorRecord> factory_operators();
std::span<const OperatorRecord> quantized_operators();
std::span<const OperatorRecord> other_operators();  ///< whose sizes others tell, and what is no operator
std::array<std::span<const OperatorRecord>, 13> operator_records();
/// @}

/// That of an overload, else of its packet; null for what is not known. O(1), allocates nothing.
const OperatorRecord* operator_record(Symbol target);
/// That which tells the sizes: of `add_` it is that of `add`.
const OperatorRecord* size_record(Symbol target);

}  // namespace fx::internal
