// fit_call: what one call that has no row of sizes makes of them, found by making that call alone.
//
// The operator runs on stand-ins for its arguments, at the example and at a few other choices of the sizes in them.
// What its result's sizes are must be an expression of the arguments' that explains every choice: one of them, times a
// number and more, divided, or two of them together.
//
// Costs: the call, 5 times for each symbol in its arguments. Thread-safety: as running the module.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/records/abstract_value.h>
#include <fxgraph/symbolic/size_expr.h>

namespace fx {

/// The value of the call `node`, of whose inputs `value_of` says what is known. `example` has a number for each symbol.
/// Of a result that no expression explains nothing is known.
AbstractValue fit_call(GraphModule& module, const Node& node,
                       const std::function<const AbstractValue&(const Node&)>& value_of,
                       const std::map<std::string, std::int64_t>& example, const SizeRanges& ranges);

}  // namespace fx
