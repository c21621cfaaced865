// Inputs of size zero: whether a traced program does with them what the graph does.
//
// Programs treat them on their own (`if (x.size(0) == 0) return …`), and what divides by a size or takes the last of so
// many ends the process. So this is tried in a child process, which may end; what ends there, and what goes another
// way, is asserted to have a size of one at least.
#pragma once

#include <functional>

#include <fxgraph/trace/size_groups.h>

namespace fx::internal {

/// Tries zero for all free groups at once; where that does not do, for each alone. `agrees` says of a run that came
/// through whether the numbers in the graph are those of the program. Cost: a fork, and a run of the program for each
/// group, most often for all of them. Where no process can be made, sizes of one at least are asserted.
void try_empty_inputs(const SampledProgram& program, SizeGroups& groups,
                      const std::function<bool(const Sample&)>& agrees);

}  // namespace fx::internal
