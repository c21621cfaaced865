// How the elements of values lie in memory, as far as a rewrite may change it. Internal to rewriter/.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/legality.h>

namespace fx::internal {

/// What decides in which order the elements of a result lie.
enum class Layout : std::uint8_t {
  taken,      ///< it is what the call takes, a view of all of it, or computed element by element: it lies as that does
  part,       ///< a view that leaves gaps, or turns dimensions: slice, transpose, an element of split
  either,     ///< it lies as what the call takes where that will do, else laid out anew: reshape
  follows,    ///< laid out anew, in the memory format of what the call takes: convolutions, norms, pooling, cat
  contiguous  ///< laid out anew, one after the other, whatever the call takes: matrix products, softmax, contiguous
};

/// Whether both are calls of one overload, with the same arguments from the one at `first` on.
bool same_calls(const Call& a, const Call& b, std::size_t first = 0);
/// Whether what a call of the function `target` gives lies as what it takes, whatever else it is given; nobody knows
/// what an unknown one does, and it is taken to.
bool keeps_layout(Symbol target);
/// Whether a call raises, or gives something else, where what it takes has other strides.
bool needs_strides(const OperatorSchema& schema);
/// Whether the call gives something else where what it takes lies otherwise in memory: OperatorTraits::reads_layout.
bool reads_layout(const Node& node);
/// Of a value, through the pointwise operators among `made`: that of what they begin with, of several the first.
Layout layout_of(const Node& node, std::span<Node* const> made);

/// Of an old value and what stands for it, once equal views of both are stepped over.
std::pair<Layout, Layout> layouts_of(const Node& old, std::span<Node* const> old_nodes, const Node& result,
                                     std::span<Node* const> new_nodes);

/// Whether two values, of calls among `old_nodes` and `new_nodes`, are computed element by element of the same values,
/// taken in the same order: the first of them that decides does so for both.
bool same_operands(const Node& old, std::span<Node* const> old_nodes, const Node& result,
                   std::span<Node* const> new_nodes);

/// Nobody depends on how the elements of `old` lie, when what stands for it may lie otherwise: with other gaps, and, if
/// `reordered`, with dimensions in another order. `dense`: every view of the old value is one of the new value too.
Verdict check_layout(const Node& old, bool reordered, const TrackedEffects& effects, bool dense = false);

}  // namespace fx::internal
