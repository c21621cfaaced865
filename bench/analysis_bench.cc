// Analyses, and Boost.Graph's own dominators on a copy of the graph beside ours.
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>

#include <fxgraph/analysis/dominators.h>
#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/analysis/use_def.h>
#include "bench/harness.h"
#include "tests/support/random_graph.h"

namespace fx::bench {
namespace {

using BoostGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

// The ids of the nodes, and one vertex more from which all that have no inputs hang.
BoostGraph boost_copy(const Graph& graph) {
  BoostGraph copy(graph.id_bound() + 1);
  for (const Node& node : graph.nodes()) {
    bool source = true;
    node.for_each_input([&](const Node& input) {
      add_edge(input.id(), node.id(), copy);
      source = false;
    });
    if (source) add_edge(graph.id_bound(), node.id(), copy);
  }
  return copy;
}

std::vector<std::size_t> boost_dominators(const BoostGraph& graph) {
  std::vector<std::size_t> parents(num_vertices(graph), BoostGraph::null_vertex());
  boost::lengauer_tarjan_dominator_tree(
      graph, num_vertices(graph) - 1,
      boost::make_iterator_property_map(parents.begin(), get(boost::vertex_index, graph)));
  return parents;
}

constexpr std::size_t kBoostSurvives = 100'000;  // its path compression recurses

void dominators(benchmark::State& state, const Graph& graph) {
  const Dominators tree(graph);
  if (graph.size() < kBoostSurvives) {
    const std::vector<std::size_t> parents = boost_dominators(boost_copy(graph));
    for (const Node& node : graph.nodes()) {
      const Node* parent = tree.immediate(node);
      if (!verified(state, (parent ? parent->id() : graph.id_bound()) == parents[node.id()], "a dominator")) return;
    }
  }
  time_reading(state, graph.size(), [&] { return Dominators(graph); });
}

void BM_BoostDominators(benchmark::State& state) {
  const BoostGraph graph = boost_copy(testing::chain(static_cast<std::size_t>(state.range(0))));
  for (auto _ : state) benchmark::DoNotOptimize(boost_dominators(graph));
  count_nodes(state, chain_nodes(state));
}
BENCHMARK(BM_BoostDominators)->Apply(peer_sizes);

void liveness(benchmark::State& state, const Graph& graph) {
  const Liveness live(graph);
  bool right = true;
  for (const Node& node : graph.nodes()) {
    const Node* last = &node;
    for (const Node& user : node.users()) last = last->is_before(user) ? &user : last;
    right = right && &live.last_use(node) == last;
  }
  if (!verified(state, right, "a last use")) return;
  time_reading(state, graph.size(), [&] { return Liveness(graph).peak_live(); });
}

void use_def(benchmark::State& state, const Graph& graph) {
  Node* const output = graph.output_node();
  Node* const input = graph.node_by_id(graph.nodes().front().id());
  const auto both_ways = [&] { return backward_slice(*output).size() + forward_slice(*input).size(); };
  const std::vector<Node*> slice = backward_slice(*output);
  if (!verified(state, !slice.empty() && slice.back() == output, "the slice")) return;
  time_reading(state, graph.size(), both_ways);
}

void effects(benchmark::State& state, const Graph& graph) {
  const Effects found(graph);
  std::size_t impure = 0;
  for (const Node& node : graph.nodes()) impure += effects_of(node).impure();
  const std::size_t listed = found.between(graph.nodes().front(), graph.nodes().back()).size();
  if (!verified(state, listed == impure, "number of impure nodes")) return;
  time_reading(state, graph.size(), [&] { return Effects(graph).num_sets(); });
}

const bool analysis_registered = register_works({
    {.name = "Dominators", .time = dominators},
    {.name = "Liveness", .time = liveness},
    {.name = "UseDef", .time = use_def},
    {.name = "Effects", .time = effects},
});

}  // namespace
}  // namespace fx::bench
