// For which element types LibTorch computes an operator: what is written out in sums and products runs on types that
// the operator of that name may not have a kernel for, half precision on a CPU above all.
//
// And what some releases compute otherwise than their formulas say. All found out by calling them once, on tensors of a
// few elements. Thread-safety: any thread may ask.
#pragma once

#include <string_view>

#include <fxgraph/ir/type_set.h>

namespace fx::rules {

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
