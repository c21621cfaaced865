// reinplace: operators that make a tensor of their own become those that write into their input, FX's reinplace.
//
//   fx::Shapes shapes = fx::propagate_shapes(*gm, {x});
//   fx::ReinplaceReport report = fx::reinplace(*gm, shapes);
//
// `b = aten::add.Tensor(a, 1)` becomes `aten::add_.Tensor(a, 1)` where nobody can tell: nothing reads `a`, or a view of
// it, afterwards; `a` is neither an input nor a weight nor returned; the result has the type, sizes and strides that
// `a` has, no two elements of `a` share memory, and no other argument shares memory with it. For programs that run
// without gradients: autograd keeps inputs for later. What stays has its reason.
//
// Scatters, which functionalisation makes of writes to views, become such writes again: `z = slice_scatter(a, u, …)` a
// copy into the slice. Where `u` is itself an operator on that slice, it writes there and the scatter goes:
//
//   v = slice(a, …)                       v = slice(a, …)
//   u = add(v, 1)                ->       add_(v, 1)
//   z = slice_scatter(a, u, …)            z is a
//
// Cost: O(nodes + uses); for a scatter chain the values in its storage and their uses. Thread-safety: none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// What reinplace() changed, and what it left.
struct ReinplaceReport {
  std::vector<Node*> changed;  ///< in graph order; for a scatter the copy that it became
  /// Scatters that went, by name: what they would have copied is there already.
  std::vector<std::string> removed;
  /// The calls that have a variant that writes and stay, with the reason.
  std::vector<std::pair<Node*, std::string>> kept;
};

/// Rewrites the graph; `shapes` are those of its values and say which share storage.
ReinplaceReport reinplace(Graph& graph, const Shapes& shapes, const EffectsOptions& effects = {});
/// The same with what is known of the program's modules.
ReinplaceReport reinplace(GraphModule& module, const Shapes& shapes);

}  // namespace fx
