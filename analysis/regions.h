// Regions of a graph that can be handled as one node: single-entry-single-exit regions and fusion groups.
//
// Both are snapshots. Complexity: O(nodes + uses) unless said otherwise; nothing recurses.
#pragma once

#include <functional>
#include <vector>

#include <fxgraph/analysis/dominators.h>

namespace fx {

/// Everything between two values: `entry` dominates `exit`, which post-dominates it. All values enter through `entry`
/// and leave through `exit`, both of which belong to the region.
struct Region {
  Node* entry = nullptr;
  Node* exit = nullptr;
  friend bool operator==(const Region&, const Region&) = default;
};

/// The smallest region that begins at each node, for the nodes where one begins, in graph order. Larger regions are
/// chains of these (the exit of one is the entry of the next): two regions are disjoint, share an end, or one contains
/// the other.
std::vector<Region> single_entry_single_exit_regions(const Dominators& dominators,
                                                     const PostDominators& post_dominators);

/// The nodes of `region`, entry first, each after the nodes that dominate it. O(nodes that the entry dominates).
std::vector<Node*> region_nodes(const Region& region, const Dominators& dominators,
                                const PostDominators& post_dominators);

/// Partitions the nodes that `fusible` accepts into groups with one exit each: every value but the last stays inside
/// the group, so a group may become one kernel. Groups are as large as can be (a node joins the group of its users when
/// they are all in one) and convex. Groups and their members are in graph order; the last member is the exit; groups of
/// one are left out. `fusible` must refuse what may not move among its neighbours, such as writes.
std::vector<std::vector<Node*>> fusion_groups(const Graph& graph, const std::function<bool(const Node&)>& fusible);

}  // namespace fx
