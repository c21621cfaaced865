// fit_call: what one call that has no row of sizes makes of them, found by making that call alone.
//
// The operator runs on stand-ins for its arguments, at the example and at a few other choices of the sizes in them.
// What its result's sizes are must be an expression of the arguments' that explains every choice: one of them, times a
// number and more, divided, or two of them together.
//
// Costs: the call, 5 times for each symbol in its arguments. Thread-safety: as running the module.
#pragma once

#include <functional>

#include <fxgraph/export/tensors.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/records/abstract_value.h>

namespace fx::pt2 {

/// The value of the call `node`, of whose inputs `value_of` says what is known. Of a result that no expression explains
/// nothing is known.
AbstractValue fit_call(GraphModule& module, const Node& node,
                       const std::function<const AbstractValue&(const Node&)>& value_of, const Symbols& example,
                       const SizeRanges& ranges);

}  // namespace fx::pt2
