// How much operators compute: what the cost column of their rows is made of.
#pragma once

#include <cstddef>
#include <optional>

#include <fxgraph/ops/records/costs.h>

namespace fx::internal {

/// Nothing where the shapes do not fit.
using CostFormula = std::optional<Operations> (*)(const CallShapes&);

namespace cost {

/// Each output element (of a transposed convolution, each input element) meets one filter: a slice of the weight along
/// its first dimension.
std::optional<Operations> convolution(const CallShapes& call);
std::optional<Operations> linear(const CallShapes& call);
std::optional<Operations> matrix_product(const CallShapes& call, std::size_t left);
std::optional<Operations> pooling(const CallShapes& call);

/// `einsum(equation, tensors)`: pairs from left to right, as ATen does; each costs the product of the sizes of all
/// their labels.
std::optional<Operations> einsum(const CallShapes& call);

/// Recurrent layers: every weight meets every step of every sequence; besides 2 operations for each row of a weight and
/// step (bias, gate).
std::optional<Operations> recurrent_layer(const CallShapes& call);
/// One step of one, whose weights begin at an input.
std::optional<Operations> recurrent_cell(const CallShapes& call, std::size_t first_weight);

/// `scaled_dot_product_attention`.
std::optional<Operations> attention(const CallShapes& call);
/// Projections, attention, projection. Sequences come first in the tensors, or batches. The attention weights among the
/// results say how many queries and keys meet; without them, the sizes do.
std::optional<Operations> multi_head_attention(const CallShapes& call, bool batch_first);

std::optional<Operations> per_output(const CallShapes& call, int operations);
std::optional<Operations> per_input(const CallShapes& call, int operations);

/// The formula `Formula` with a number.
template <auto Formula, auto number>
std::optional<Operations> with(const CallShapes& call) {
  return Formula(call, number);
}
template <std::size_t left>
constexpr CostFormula matrices = with<matrix_product, left>;
template <std::size_t first_weight>
constexpr CostFormula cell = with<recurrent_cell, first_weight>;
template <bool batch_first>
constexpr CostFormula multi_head = with<multi_head_attention, batch_first>;
template <int operations>
constexpr CostFormula each_output = with<per_output, operations>;
template <int operations>
constexpr CostFormula each_input = with<per_input, operations>;

}  // namespace cost
}  // namespace fx::internal
