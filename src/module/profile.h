// How long each node of a graph takes: what FX's tutorial builds as ProfilingInterpreter.
//
//   fx::NodeTimes times = fx::profile(*gm, {x}, 21);
//   fx::summarize(times[node]).seconds;   // the median
//
// The graph runs node by node (module/interpreter.h), once to warm up and then `runs` times; the forward of the
// GraphModule itself goes through a plan and is a little faster than the sum. Buffers are written as in any run: who
// minds keeps them (module/state_keeper.h). Errors are the Interpreter's.
#pragma once

#include <fxgraph/ir/node_times.h>
#include <fxgraph/module/interpreter.h>

namespace fx {

/// The seconds of each of `runs` runs, for each node that ran. `inputs` are used again in every run.
NodeTimes profile(GraphModule& module, const Args& inputs, std::size_t runs = 21);

}  // namespace fx
