#include "tests/support/analysis_oracles.h"

#include <algorithm>

#include <fxgraph/analysis/dominators.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/analysis/use_def.h>
#include <fxgraph/ir/node_map.h>

namespace fx::testing {

namespace {

/// Which nodes are still reached when `without` is gone: forward from the nodes without inputs, or backward from those
/// without users.
NodeMap<bool> reached_without(const Graph& graph, const std::vector<Node*>& nodes, const Node& without, bool backward) {
  NodeMap<bool> reached(graph, false);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[backward ? nodes.size() - 1 - i : i];
    if (&node == &without) continue;
    bool end = true, any = false;
    const auto take = [&](const Node& neighbour) {
      end = false;
      any = any || reached[neighbour];
    };
    if (backward) {
      for (const Node& user : node.users()) take(user);
    } else {
      node.for_each_input(take);
    }
    reached[node] = end || any;
  }
  return reached;
}

std::string disagreement(const Graph& graph, const DominatorTree& tree, bool post) {
  const std::vector<Node*> nodes = all_nodes(graph);
  NodeMap<std::uint32_t> depth(graph, 0);
  for (const Node* a : nodes) {
    const NodeMap<bool> reached = reached_without(graph, nodes, *a, post);
    for (const Node* b : nodes) {
      depth[*b] += !reached[*b];
      if (tree.dominates(*a, *b) == reached[*b])
        return a->name() + (post ? " post-dominates " : " dominates ") + b->name() + ", or not";
    }
  }
  for (const Node* node : nodes) {
    const Node* parent = tree.immediate(*node);
    if (tree.depth(*node) != depth[*node]) return "depth of " + node->name();
    if (depth[*node] != (parent ? depth[*parent] : 0) + 1) return "immediate dominator of " + node->name();
    if (parent && !tree.dominates(*parent, *node)) return "immediate dominator of " + node->name();
  }
  return "";
}

}  // namespace

std::vector<Node*> all_nodes(const Graph& graph) {
  std::vector<Node*> nodes;
  for (const Node& node : graph.nodes()) nodes.push_back(const_cast<Node*>(&node));
  return nodes;
}

std::string disagreement_on_dominators(const Graph& graph) {
  const std::string found = disagreement(graph, Dominators(graph), false);
  return found.empty() ? disagreement(graph, PostDominators(graph), true) : found;
}

std::vector<std::vector<Node*>> live_sets(const Graph& graph) {
  const std::vector<Node*> nodes = all_nodes(graph);
  std::vector<std::vector<Node*>> live(nodes.size());
  for (std::size_t def = 0; def < nodes.size(); ++def) {
    if (nodes[def]->is(Op::output)) continue;
    std::size_t last = def;
    for (std::size_t at = def; at < nodes.size(); ++at)
      nodes[at]->for_each_input([&](Node& input) { last = &input == nodes[def] ? at : last; });
    for (std::size_t at = def; at <= last; ++at) live[at].push_back(nodes[def]);
  }
  return live;
}

std::string disagreement_on_liveness(const Graph& graph) {
  const auto expected = live_sets(graph);
  const std::vector<Node*> nodes = all_nodes(graph);
  const Liveness live(graph);
  std::size_t peak = 0;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    std::vector<Node*> found;
    for (Node& value : live.at(*nodes[at])) found.push_back(&value);
    if (found != expected[at]) return "live values at " + nodes[at]->name();
    for (const Node* value : found) {
      if (!live.is_live_at(*value, *nodes[at])) return "is_live_at " + nodes[at]->name() + " of " + value->name();
    }
    peak = std::max(peak, found.size());
  }
  if (live.peak_live() != peak) return "peak_live";
  if (!nodes.empty() && expected[live.place(*live.peak_live_node())].size() != peak) return "peak_live_node";
  return "";
}

std::vector<std::vector<bool>> closure(const Graph& graph, const OrderEdges* order) {
  std::vector<std::vector<bool>> reaches(graph.id_bound(), std::vector<bool>(graph.id_bound(), false));
  for (const Node& node : graph.nodes()) {
    const auto take = [&](const Node& input) {
      for (std::size_t a = 0; a < reaches.size(); ++a) {
        if (reaches[a][input.id()]) reaches[a][node.id()] = true;
      }
    };
    reaches[node.id()][node.id()] = true;
    node.for_each_input(take);
    if (!order) continue;
    for (const Node* before : order->before(node)) take(*before);
  }
  return reaches;
}

std::string disagreement_on_reachability(const Graph& graph, const OrderEdges* order) {
  const auto expected = closure(graph, order);
  Reachability reaches(graph, order);
  for (const Node& a : graph.nodes()) {
    for (const Node& b : graph.nodes()) {
      if (reaches(a, b) != expected[a.id()][b.id()]) return "reachability of " + b.name() + " from " + a.name();
    }
  }
  return "";
}

}  // namespace fx::testing
