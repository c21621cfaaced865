// Where to cut a program into stages that run one after the other, each on its own machine.
//
// First along the order of the graph: the slowest stage is made as fast as it can be, and of all cuts that leave it
// within `slack` of that the ones are taken that send the fewest bytes (both exact, by dynamic programming). Then each
// cut in turn leaves the order of the graph: a minimum cut (Boost.Graph) over the nodes near it, which no use or order
// edge crosses backwards, may send still less. Nodes of one unit are never parted.
//
// Cost: O(stages · nodes) and the flows, of at most kWindow nodes each. Thread-safety: reads the graph only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

struct StageProblem {
  const Graph* graph = nullptr;
  const OrderEdges* order = nullptr;
  NodeMap<double> seconds;        ///< of each call
  NodeMap<std::int64_t> bytes;    ///< of each value, when it is sent
  NodeMap<std::int64_t> weights;  ///< bytes of parameters that a call reads and no call before it did
  NodeMap<std::uint32_t> unit;    ///< calls of one number stay together; 0: by itself
  std::size_t stages = 1;
  double slack = 0.1;
  std::int64_t max_weights = 0;  ///< of a stage; 0: no limit
};

/// Returns the stage of each call, from 0, never before the stage of what it uses. Throws Error(invalid_argument) when
/// the program cannot be cut into so many stages, or into stages of so few bytes.
NodeMap<std::uint32_t> cut_stages(const StageProblem& problem);

}  // namespace fx
