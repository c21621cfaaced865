// Boost.Graph's algorithms, unmodified, on the view of a graph.
#include <fxgraph/analysis/view.h>

#include "tests/analysis/undirected_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/betweenness_centrality.hpp>
#include <boost/graph/biconnected_components.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/dominator_tree.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/graph/incremental_components.hpp>
#include <boost/graph/page_rank.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <boost/graph/stoer_wagner_min_cut.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/graph/transitive_closure.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <boost/property_map/vector_property_map.hpp>
#include <sstream>

#include "tests/support/random_graph.h"

namespace fx::view_test {

using testing::random_graph;
using testing::random_options;

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::IncidenceGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<GraphView, Node*, boost::vertex_index_t>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<GraphView, Node*, boost::vertex_name_t>));
BOOST_CONCEPT_ASSERT((boost::LvaluePropertyMapConcept<NodeProperty<int>, Node*>));
BOOST_CONCEPT_ASSERT((boost::ReadWritePropertyMapConcept<NodeProperty<bool>, Node*>));
BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<UndirectedView>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<UndirectedView>));
BOOST_CONCEPT_ASSERT((boost::IncidenceGraphConcept<UndirectedView>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyGraphConcept<UndirectedView>));

/// x -> a, b; c = a + b; d = c + c; out (d, [b]).
struct Diamond {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x}, {}, "a");
  Node& b = graph.call_function("aten::neg", {x}, {}, "b");
  Node& c = graph.call_function("aten::add.Tensor", {a, b}, {}, "c");
  Node& d = graph.call_function("aten::add.Tensor", {c, c}, {}, "d");
  Node& out = graph.output(Argument::tuple({d, Argument::list({b})}));
};

using Oracle = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

/// The same graph in Boost's own container, numbered as the view numbers it.
Oracle copy_of(const Graph& graph) {
  Oracle copy(graph.size());
  const GraphView v = view(graph);
  for (const Node& user : graph.nodes()) {
    user.for_each_input([&](Node& input) { add_edge(v.index(input), v.index(user), copy); });
  }
  return copy;
}

Graph holed_graph(std::uint64_t seed) {
  Graph graph = random_graph(seed, random_options(seed));
  graph.eliminate_dead_code([](const Node&) { return false; });
  return graph;
}

TEST(View, CountsVerticesAndEdges) {
  Diamond g;
  const GraphView v = view(g.graph);
  EXPECT_EQ(num_vertices(v), 6u);
  EXPECT_EQ(num_edges(v), 8u);
  EXPECT_EQ(std::distance(edges(v).first, edges(v).second), 8);
  EXPECT_EQ(out_degree(&g.c, v), 2u);
  EXPECT_EQ(in_degree(&g.d, v), 2u);
  EXPECT_EQ(in_degree(&g.out, v), 2u);
  EXPECT_EQ(in_degree(&g.x, v), 0u);
  EXPECT_EQ(degree(&g.b, v), 3u);
}

TEST(View, ParallelEdgesAreDistinct) {
  Diamond g;
  const GraphView v = view(g.graph);
  const auto [begin, end] = out_edges(&g.c, v);
  const std::vector<ValueEdge> uses(begin, end);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_FALSE(uses[0] == uses[1]);
  EXPECT_EQ(source(uses[0], v), &g.c);
  EXPECT_EQ(target(uses[1], v), &g.d);
  // However an edge is come upon, it is one edge, and no other.
  std::size_t i = 0;
  for (auto [one, end_of_one] = edges(v); one != end_of_one; ++one, ++i) {
    std::size_t j = 0;
    for (auto [other, end_of_other] = edges(v); other != end_of_other; ++other, ++j) {
      EXPECT_EQ(one == other, i == j);
      EXPECT_EQ(*one == *other, i == j);
      EXPECT_EQ((IncidentEdge{*one, false} == IncidentEdge{*other, true}), i == j);
    }
  }
}

TEST(View, InEdgesWalkNestedArguments) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y"), &z = graph.placeholder("z");
  Node& n = graph.call_function("f", {Argument::list({1, Argument::tuple({y, Argument::list(ArgumentSpan{})}), x}), 2},
                                {{"k", Argument::dict({"a", z})}});
  const auto [begin, end] = in_edges(&n, view(graph));
  std::vector<Node*> sources;
  for (auto it = begin; it != end; ++it) sources.push_back((*it).source);
  EXPECT_THAT(sources, ::testing::ElementsAre(&y, &x, &z));
}

TEST(View, OrderEdgesFollowTheUses) {
  Diamond g;
  const OrderEdge extra[] = {{&g.a, &g.b}, {&g.a, &g.out}};
  const OrderEdges order(g.graph, extra);
  const GraphView v = view(g.graph, order);
  EXPECT_EQ(num_edges(v), 10u);
  EXPECT_EQ(std::distance(edges(v).first, edges(v).second), 10);
  std::vector<Node*> after;
  for (auto [it, end] = adjacent_vertices(&g.a, v); it != end; ++it) after.push_back(*it);
  EXPECT_THAT(after, ::testing::ElementsAre(&g.c, &g.b, &g.out));
  EXPECT_EQ(in_degree(&g.b, v), 2u);
  EXPECT_TRUE((*std::next(in_edges(&g.b, v).first)).is_order());
}

TEST(OrderEdges, OfAGraphThatWritesNothingAreNone) {
  Graph graph;
  Node& x = graph.placeholder("x");
  const OrderEdges none = Effects(graph).order_edges();
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(none.after(x).empty());
  graph.call_function("aten::relu_", {x});
  graph.call_function("aten::relu_", {x});
  const OrderEdges one = Effects(graph).order_edges();
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(one.size(), 1u);
  for (int later = 0; later < 3; ++later) {
    Node& made = graph.call_function("aten::neg", {x});
    EXPECT_TRUE(one.after(made).empty() && one.before(made).empty());
  }
}

TEST(View, EdgesAgreeWithACopyOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = holed_graph(seed);
    const GraphView v = view(graph);
    const Oracle copy = copy_of(graph);
    ASSERT_EQ(num_edges(v), num_edges(copy)) << seed;
    std::size_t seen = 0;
    for (auto [it, end] = edges(v); it != end; ++it) ++seen;
    ASSERT_EQ(seen, num_edges(copy)) << seed;
    std::size_t next = 0;
    for (auto [it, end] = vertices(v); it != end; ++it) {
      const auto i = get(boost::vertex_index, v, *it);
      ASSERT_LT(i, num_vertices(v));
      ASSERT_EQ(i, graph.size() == graph.id_bound() ? (*it)->id() : next);
      ++next;
      ASSERT_EQ(out_degree(*it, v), out_degree(i, copy)) << seed;
      std::vector<std::size_t> sources, expected;
      for (auto [in, in_end] = inv_adjacent_vertices(*it, v); in != in_end; ++in) sources.push_back(v.index(**in));
      for (auto [in, in_end] = inv_adjacent_vertices(i, copy); in != in_end; ++in) expected.push_back(*in);
      ASSERT_EQ(sources, expected) << seed;
    }
  }
}

// ── The algorithms ───────────────────────────────────────────────────────────────────────────────────────────────────

TEST(ViewAlgorithms, TopologicalSort) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = holed_graph(seed);
    std::vector<Node*> order;
    boost::topological_sort(view(graph), std::back_inserter(order));
    std::reverse(order.begin(), order.end());
    ASSERT_EQ(order.size(), graph.size());
    NodeMap<int> place(graph, -1);
    for (std::size_t i = 0; i < order.size(); ++i) place[*order[i]] = static_cast<int>(i);
    for (const Node& node : graph.nodes()) {
      node.for_each_input([&](Node& input) { ASSERT_LT(place[input], place[node]); });
    }
  }
}

TEST(ViewAlgorithms, BreadthFirstDistances) {
  Diamond g;
  NodeMap<int> distance(g.graph, 0);
  boost::breadth_first_search(
      view(g.graph), &g.x,
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(node_property(distance), boost::on_tree_edge()))));
  EXPECT_EQ(distance[g.a], 1);
  EXPECT_EQ(distance[g.c], 2);
  EXPECT_EQ(distance[g.d], 3);
  EXPECT_EQ(distance[g.out], 2);
}

TEST(ViewAlgorithms, DepthFirstFindsNoBackEdge) {
  struct Visitor : boost::default_dfs_visitor {
    void back_edge(const ValueEdge&, const GraphView&) { ++*back; }
    void discover_vertex(Node*, const GraphView&) { ++*found; }
    int *back, *found;
  };
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = holed_graph(seed);
    int back = 0, found = 0;
    Visitor visitor;
    visitor.back = &back;
    visitor.found = &found;
    boost::depth_first_search(view(graph), boost::visitor(visitor));
    EXPECT_EQ(back, 0);
    EXPECT_EQ(found, static_cast<int>(graph.size()));
  }
}

TEST(ViewAlgorithms, DominatorTree) {
  Diamond g;
  NodeMap<Node*> parent(g.graph, nullptr);
  boost::lengauer_tarjan_dominator_tree(view(g.graph), &g.x, node_property(parent));
  EXPECT_EQ(parent[g.x], nullptr);
  EXPECT_EQ(parent[g.a], &g.x);
  EXPECT_EQ(parent[g.c], &g.x);
  EXPECT_EQ(parent[g.d], &g.c);
  EXPECT_EQ(parent[g.out], &g.x);
}

TEST(ViewAlgorithms, TransitiveClosure) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Graph graph = holed_graph(seed);
    using Closure = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
    Closure closure, expected;
    boost::transitive_closure(view(graph), closure);
    boost::transitive_closure(copy_of(graph), expected);
    ASSERT_EQ(num_edges(closure), num_edges(expected));
    for (auto [it, end] = edges(expected); it != end; ++it) {
      ASSERT_TRUE(edge(source(*it, expected), target(*it, expected), closure).second);
    }
  }
}

TEST(ViewAlgorithms, StrongComponentsAreSingle) {
  const Graph graph = holed_graph(7);
  NodeMap<int> component(graph, 0);
  EXPECT_EQ(boost::strong_components(view(graph), node_property(component)), static_cast<int>(graph.size()));
}

TEST(ViewAlgorithms, ConnectedComponents) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  Node &a = graph.call_function("aten::relu", {x}), &b = graph.call_function("aten::relu", {y});
  NodeMap<int> component(graph, 0);
  const GraphView v = view(graph);
  EXPECT_EQ(boost::connected_components(undirected(v), node_property(component)), 2);
  EXPECT_EQ(component[x], component[a]);
  EXPECT_EQ(component[y], component[b]);
  EXPECT_NE(component[x], component[y]);

  // The same from the list of edges.
  NodeMap<std::size_t> rank(graph, 0);
  NodeMap<Node*> parent(graph, nullptr);
  auto ranks = node_property(rank);
  auto parents = node_property(parent);
  boost::disjoint_sets sets(ranks, parents);
  boost::initialize_incremental_components(v, sets);
  boost::incremental_components(v, sets);
  EXPECT_EQ(sets.find_set(&x), sets.find_set(&a));
  EXPECT_NE(sets.find_set(&x), sets.find_set(&y));
}

TEST(ViewAlgorithms, DagShortestPathsIsTheCriticalPath) {
  Diamond g;
  NodeMap<int> distance(g.graph, 0);
  const auto length = boost::make_function_property_map<ValueEdge, int>([](const ValueEdge&) { return -1; });
  boost::dag_shortest_paths(view(g.graph), &g.x, boost::distance_map(node_property(distance)).weight_map(length));
  EXPECT_EQ(distance[g.out], -4);  // x, a, c, d, output
}

TEST(ViewAlgorithms, MinimumCutPartitions) {
  // Two triangles joined by one edge.
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x});
  Node& b = graph.call_function("aten::add.Tensor", {x, a});
  Node& c = graph.call_function("aten::neg", {b});
  Node& d = graph.call_function("aten::relu", {c});
  Node& e = graph.call_function("aten::add.Tensor", {c, d});
  const GraphView v = view(graph);
  NodeMap<bool> side(graph, false);
  const auto weight = boost::make_function_property_map<IncidentEdge, int>([](const IncidentEdge&) { return 1; });
  EXPECT_EQ(boost::stoer_wagner_min_cut(undirected(v), weight, boost::parity_map(node_property(side))), 1);
  EXPECT_EQ(side[x], side[a]);
  EXPECT_EQ(side[a], side[b]);
  EXPECT_NE(side[b], side[c]);
  EXPECT_EQ(side[c], side[d]);
  EXPECT_EQ(side[d], side[e]);
}

TEST(ViewAlgorithms, ArticulationPoints) {
  Diamond g;
  const GraphView v = view(g.graph);
  std::vector<Node*> points;
  boost::articulation_points(undirected(v), std::back_inserter(points));
  EXPECT_TRUE(points.empty());  // b reaches the output on a way of its own
  g.out.set_args({Argument(g.d)});
  boost::articulation_points(undirected(view(g.graph)), std::back_inserter(points));
  std::sort(points.begin(), points.end(), [](Node* a, Node* b) { return a->is_before(*b); });
  EXPECT_THAT(points, ::testing::ElementsAre(&g.c, &g.d));
}

TEST(ViewAlgorithms, PageRank) {
  Diamond g;
  NodeMap<double> rank(g.graph, 0.0), next(g.graph, 0.0);
  boost::graph::page_rank(view(g.graph), node_property(rank), boost::graph::n_iterations(20), 0.85,
                          num_vertices(view(g.graph)), node_property(next));
  EXPECT_GT(rank[g.out], rank[g.x]);
  EXPECT_GT(rank[g.c], rank[g.a]);
}

TEST(ViewAlgorithms, BetweennessCentrality) {
  Diamond g;
  NodeMap<double> centrality(g.graph, 0.0);
  boost::brandes_betweenness_centrality(view(g.graph), node_property(centrality));
  EXPECT_GT(centrality[g.c], 0.0);
  EXPECT_EQ(centrality[g.x], 0.0);
  EXPECT_EQ(centrality[g.out], 0.0);
}

TEST(ViewAlgorithms, ReverseGraphGivesPostDominators) {
  Diamond g;
  const GraphView v = view(g.graph);
  NodeMap<Node*> parent(g.graph, nullptr);
  boost::lengauer_tarjan_dominator_tree(boost::make_reverse_graph(v), &g.out, node_property(parent));
  EXPECT_EQ(parent[g.a], &g.c);
  EXPECT_EQ(parent[g.c], &g.d);
  EXPECT_EQ(parent[g.x], &g.out);
}

TEST(ViewAlgorithms, FilteredGraph) {
  Diamond g;
  const GraphView v = view(g.graph);
  const std::function<bool(Node*)> no_b = [&](Node* node) { return node != &g.b; };
  const boost::filtered_graph<GraphView, boost::keep_all, std::function<bool(Node*)>> filtered(v, {}, no_b);
  std::vector<Node*> order;
  boost::topological_sort(filtered, std::back_inserter(order));
  EXPECT_THAT(order, ::testing::ElementsAre(&g.out, &g.d, &g.c, &g.a, &g.x));
}

TEST(ViewAlgorithms, WriteGraphviz) {
  Diamond g;
  const GraphView v = view(g.graph);
  std::ostringstream out;
  boost::write_graphviz(out, v, boost::make_label_writer(get(boost::vertex_name, v)));
  EXPECT_THAT(out.str(), ::testing::HasSubstr("label=d"));
  EXPECT_THAT(out.str(), ::testing::HasSubstr("3->4"));
}

TEST(ViewAlgorithms, OrderEdgesConstrainTopologicalSort) {
  Diamond g;
  const OrderEdge extra[] = {{&g.b, &g.a}};
  const OrderEdges order(g.graph, extra);
  std::vector<Node*> sorted;
  boost::topological_sort(view(g.graph, order), std::back_inserter(sorted));
  EXPECT_LT(std::find(sorted.begin(), sorted.end(), &g.a), std::find(sorted.begin(), sorted.end(), &g.b));
}

}  // namespace fx::view_test
