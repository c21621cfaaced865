// Where to cut a program into stages that run one after the other, each on its own machine.
//
// First along the order of the graph: the slowest stage is made as fast as it can be, and of all cuts that leave it
// within `slack` of that the ones are taken over which the fewest bytes go (both exact, by dynamic programming; a value
// that passes several cuts counts at each). Then each cut in turn leaves the order of the graph: a minimum cut
// (Boost.Graph) over the nodes near it, which no use or order edge crosses backwards, may send still less. Nodes of one
// unit are never parted.
//
// Cost: O(stages · nodes), with max_memory times log nodes, and the flows, of at most kWindow nodes each.
// Thread-safety: reads the graph only.
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
  NodeMap<double> seconds;                      ///< of each call
  NodeMap<std::int64_t> bytes;                  ///< of each value, when it is sent
  NodeMap<std::vector<std::uint32_t>> weights;  ///< the parameters and buffers that a call reads, each once
  std::vector<std::int64_t> weight_bytes;       ///< of each of these; a stage has those that its calls read
  NodeMap<std::uint32_t> unit;                  ///< calls of one number stay together; 0: by itself
  std::size_t stages = 1;
  double slack = 0.1;
  std::int64_t max_weights = 0;  ///< bytes of a stage's weights; 0: no limit
  /// The storages that a value lies in, each once, without weights; looked at with max_memory alone.
  NodeMap<std::vector<std::uint32_t>> storages;
  std::vector<std::int64_t> storage_bytes;
  std::int64_t max_memory = 0;  ///< bytes of a stage's weights and of its activations at once; 0: no limit
};

/// Returns the stage of each call, from 0, never before the stage of what it uses. Throws Error(invalid_argument) when
/// the program cannot be cut into so many stages, or, along the graph's order, into stages of so few bytes.
NodeMap<std::uint32_t> cut_stages(const StageProblem& problem);

}  // namespace fx
