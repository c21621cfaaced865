#include <fxgraph/analysis/regions.h>

#include <fxgraph/ir/node_map.h>

namespace fx {

// If a node does not dominate its immediate post-dominator, it dominates no later one either: a path that avoids it
// until there goes on to them. So the immediate post-dominator is the only candidate for the smallest region.
std::vector<Region> single_entry_single_exit_regions(const Dominators& dominators,
                                                     const PostDominators& post_dominators) {
  std::vector<Region> regions;
  for (const Node& entry : dominators.graph().nodes()) {
    Node* exit = post_dominators.immediate(entry);
    if (exit && dominators.dominates(entry, *exit)) regions.push_back({const_cast<Node*>(&entry), exit});
  }
  return regions;
}

std::vector<Node*> region_nodes(const Region& region, const Dominators& dominators,
                                const PostDominators& post_dominators) {
  std::vector<Node*> nodes;
  for (Node& node : dominators.dominated(*region.entry)) {
    if (post_dominators.dominates(*region.exit, node)) nodes.push_back(&node);
  }
  return nodes;
}

std::vector<std::vector<Node*>> fusion_groups(const Graph& graph, const std::function<bool(const Node&)>& fusible) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0}, kOutside = kNone - 1;
  // A group is known by the id of its exit. Backwards, `joined` collects the group of the users seen so far: none yet,
  // one, or more than one (outside).
  std::vector<std::uint32_t> joined(graph.id_bound(), kNone), size(graph.id_bound(), 0);
  for (const Node& node : graph.nodes().reversed()) {
    std::uint32_t& group = joined[node.id()];
    if (!fusible(node)) {
      group = kOutside;
    } else if (group == kNone || group == kOutside) {
      group = node.id();
    }
    if (group != kOutside) ++size[group];
    node.for_each_input([&](const Node& input) {
      std::uint32_t& offered = joined[input.id()];
      offered = offered == kNone || offered == group ? group : kOutside;
    });
  }
  std::vector<std::vector<Node*>> groups;
  std::vector<std::uint32_t> place(graph.id_bound(), kNone);
  for (const Node& node : graph.nodes()) {
    const std::uint32_t group = joined[node.id()];
    if (group == kOutside || size[group] < 2) continue;
    if (place[group] == kNone) {
      place[group] = static_cast<std::uint32_t>(groups.size());
      groups.emplace_back().reserve(size[group]);
    }
    groups[place[group]].push_back(const_cast<Node*>(&node));
  }
  return groups;
}

}  // namespace fx
