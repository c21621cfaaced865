// Times that were measured, node by node, and what is shown of them: the median and how far runs lie apart.
//
// Thread-safety: none needed; values.
#pragma once

#include <cstddef>
#include <vector>

#include <fxgraph/ir/node_map.h>

namespace fx {

/// Seconds of each run, for each node; nodes that did not run have none.
using NodeTimes = NodeMap<std::vector<double>>;

/// What many runs of one node come to.
struct MeasuredTime {
  double seconds = 0;    ///< median
  double spread = 0;     ///< half of what lies between the quartiles
  std::size_t runs = 0;  ///< how many there were; 0: never measured
};

/// O(runs log runs).
MeasuredTime summarize(std::vector<double> seconds);

/// Adds up run by run, so that a sum has a median and a spread of its own. `sum` may be empty.
void add_runs(std::vector<double>& sum, const std::vector<double>& seconds);

}  // namespace fx
