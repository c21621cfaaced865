// What calls say of the sizes of the tensors that they make: so for all sizes, where runs only suggest something.
//
// Thread-safety: pure functions. Costs: linear in the sizes that the call takes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <fxgraph/export/tensors.h>
#include <fxgraph/ir/graph.h>

namespace fx::pt2 {

/// What is known of the values that a call takes.
struct KnownSizes {
  std::function<const std::vector<SymbolicSize>&(const Node&)> of_tensor;
  std::function<std::optional<SizeExpr>(const Node&)> of_number;  ///< nothing for what is no whole number
};

/// The size in dimension `dim` of what the node makes: of pictures that are resized by factors, diagonals, windows,
/// tensors that are joined, views. Nothing for other calls and dimensions, and for sizes that do not vary.
std::optional<SizeExpr> said_size(const Node& node, std::size_t dim, const KnownSizes& known);

}  // namespace fx::pt2
