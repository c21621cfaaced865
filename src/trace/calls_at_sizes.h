// Whether a call of a traced program does the same after a call at other sizes.
//
// A second call at the same sizes (trace/second_call.h) does not show what is kept at one length and read at another: a
// cache that only single steps read. Each sample begins with nothing kept.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/trace/sample.h>
#include <fxgraph/trace/second_call.h>
#include <fxgraph/trace/size_groups.h>

namespace fx::internal {

struct CallsAtSizes {
  const SecondCallPlan& plan;  ///< its `run` is not used
  RunProgram run;              ///< puts nothing back
  const std::vector<BufferUpdate>& updates;
  std::string name;  ///< of the module
};

/// Throws Error(trace) when a call at sizes that `groups` may have does something else after one at those of the
/// examples, or the other way round. To be called for programs that leave something in members. Cost: some calls in a
/// child process, and what spare trials may take (child_trials.h).
void compare_calls_at_sizes(const CallsAtSizes& calls, const SampledProgram& program,
                            const std::vector<BoundTensor>& inputs, SizeGroups& groups);

}  // namespace fx::internal
