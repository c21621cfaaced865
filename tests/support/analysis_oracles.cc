#include "tests/support/analysis_oracles.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <set>

#include "analysis/dominators.h"
#include "analysis/liveness.h"
#include "analysis/use_def.h"

namespace fx::testing {

namespace {

using BoostGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

/// The graph in Boost's container with the virtual ends written out: vertex id_bound is the entry, id_bound + 1 the
/// exit.
BoostGraph with_virtual_ends(const Graph& graph) {
  const std::size_t entry = graph.id_bound(), exit = entry + 1;
  BoostGraph copy(graph.id_bound() + 2);
  for (const Node& node : graph.nodes()) {
    bool source = true;
    node.for_each_input([&](Node& input) {
      add_edge(input.id(), node.id(), copy);
      source = false;
    });
    if (source) add_edge(entry, node.id(), copy);
    if (!node.has_users()) add_edge(node.id(), exit, copy);
  }
  return copy;
}

std::vector<std::size_t> boost_parents(const Graph& graph, bool post) {
  const BoostGraph copy = with_virtual_ends(graph);
  std::vector<std::size_t> parents(num_vertices(copy), BoostGraph::null_vertex());
  const auto map = boost::make_iterator_property_map(parents.begin(), get(boost::vertex_index, copy));
  if (post) {
    boost::lengauer_tarjan_dominator_tree(boost::make_reverse_graph(copy), graph.id_bound() + 1, map);
  } else {
    boost::lengauer_tarjan_dominator_tree(copy, graph.id_bound(), map);
  }
  return parents;
}

std::string disagreement(const Graph& graph, const DominatorTree& tree, bool post) {
  const std::vector<std::size_t> parents = boost_parents(graph, post);
  const std::size_t root = graph.id_bound() + (post ? 1 : 0);
  const std::vector<Node*> nodes = all_nodes(graph);
  const auto is = [&](const Node* node, std::size_t id) { return (node ? node->id() : root) == id; };
  for (const Node* b : nodes) {
    const std::string place = (post ? "post-dominators of " : "dominators of ") + b->name();
    if (!is(tree.immediate(*b), parents[b->id()])) return place + ": immediate";
    std::set<std::size_t> above;
    for (std::size_t at = b->id(); at != root; at = parents[at]) above.insert(at);
    if (tree.depth(*b) != above.size()) return place + ": depth";
    for (const Node* a : nodes) {
      if (tree.dominates(*a, *b) != (above.count(a->id()) == 1)) return place + ": dominates, with " + a->name();
      std::size_t common = a->id();
      while (common != root && !above.count(common)) common = parents[common];
      if (!is(tree.common(*a, *b), common)) return place + ": common, with " + a->name();
    }
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
