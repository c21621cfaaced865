// What the calls of a program cost: the time that calls take.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// By operations and bytes; a call whose cost is not known takes what its bytes take.
NodeMap<double> modelled_seconds(const GraphModule& module, const Shapes& shapes);

/// The median of a few runs, after one to warm up: of the processor's time where operators use one thread, which leaves
/// out what else the machine does, else of the clock's.
NodeMap<double> measured_seconds(GraphModule& module, const std::vector<c10::IValue>& examples);

}  // namespace fx
