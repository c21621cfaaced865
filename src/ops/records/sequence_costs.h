// The operators whose cost is more than one product: einsum, recurrent layers, attention. Internal to
// src/ops/records/*costs.cc.
#pragma once

#include <optional>

#include <fxgraph/ops/records/costs.h>

namespace fx {

/// `einsum(equation, tensors)`: pairs from left to right, as ATen does; each costs the product of the sizes of all
/// their labels. Nothing when the equation or the shapes do not fit.
std::optional<Operations> einsum(const CallShapes& call);

/// Recurrent layers: every weight meets every step of every sequence; besides 2 operations for each row of a weight and
/// step (bias, gate).
std::optional<Operations> recurrent_layer(const CallShapes& call);
/// One step of one, whose weights begin at the input `First`.
std::optional<Operations> recurrent_cell(const CallShapes& call, std::size_t first_weight);

/// `scaled_dot_product_attention`.
std::optional<Operations> attention(const CallShapes& call);
/// Projections, attention, projection. Sequences come first in the tensors, or batches. The attention weights among the
/// results say how many queries and keys meet; without them, the sizes do.
std::optional<Operations> multi_head_attention(const CallShapes& call, bool batch_first);

}  // namespace fx
