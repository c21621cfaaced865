#include "tests/analysis/boost_dominators.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <set>

#include <fxgraph/analysis/dominators.h>
#include "tests/support/analysis_oracles.h"

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

std::string disagreement_with_boost(const Graph& graph) {
  const std::string found = disagreement(graph, Dominators(graph), false);
  return found.empty() ? disagreement(graph, PostDominators(graph), true) : found;
}

}  // namespace fx::testing
