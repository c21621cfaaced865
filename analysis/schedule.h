// An order of the nodes that needs less memory.
#pragma once

#include <cstdint>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/liveness.h>

namespace fx {

struct Schedule {
  std::vector<Node*> order;
  std::int64_t peak_before = 0;  ///< bytes
  std::int64_t peak_after = 0;   ///< never more than before
};

/// Looks for an order with a lower peak of the counted storages of `live`, which must have been made with shapes. Uses
/// and the order edges of `effects` are kept, inputs stay first and the output last, so the program does the same. Two
/// greedy list schedules are tried, one from the start and one from the end, each taking the ready node that adds the
/// fewest bytes (then the one that came first); when neither is better, the order stays as it is. Finding the lowest
/// peak is NP-hard (R. Sethi, "Complete register allocation problems", 1975). O((nodes + uses) log nodes).
Schedule lower_peak(const Liveness& live, const Effects& effects);

/// Moves the nodes of `graph` into this order, which must be one of all its nodes. Analyses made before are then
/// invalid.
void apply_order(Graph& graph, const std::vector<Node*>& order);

}  // namespace fx
