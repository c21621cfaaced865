// Boost's VF2 finds the same matches as ours, of those that bind every name to a value of its own.
#include <gtest/gtest.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/vf2_sub_graph_iso.hpp>
#include <map>
#include <set>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/text/print.h>
#include "tests/support/random_graph.h"

namespace fx::isomorphism_test {

/// Vertices are nodes with their targets; an edge goes from a user to an operand, with a bit for each place it stands
/// at.
using Labelled = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS,
                                       boost::property<boost::vertex_name_t, std::string>,
                                       boost::property<boost::edge_weight_t, unsigned>>;

/// `wildcards`: placeholders are vertices without a label.
Labelled labelled(const Graph& graph, bool wildcards, std::vector<const Node*>& nodes) {
  Labelled made;
  NodeMap<std::size_t> vertex(graph);
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::output)) continue;
    const bool open = wildcards && node.is(Op::placeholder);
    vertex[node] = add_vertex(open ? std::string() : node.target().str(), made);
    nodes.push_back(&node);
    std::map<std::size_t, unsigned> places;
    for (std::size_t i = 0; i < node.args().size(); ++i) {
      if (const Node* operand = node.args()[i].node_or_null()) places[vertex[*operand]] |= 1u << i;
    }
    for (const auto& [operand, bits] : places) add_edge(vertex[node], operand, bits, made);
  }
  return made;
}

std::set<std::string> by_vf2(const Graph& pattern, const Graph& graph) {
  std::vector<const Node*> small_nodes;
  std::vector<const Node*> large_nodes;
  const Labelled small = labelled(pattern, true, small_nodes);
  const Labelled large = labelled(graph, false, large_nodes);
  std::set<std::string> found;
  const auto note = [&](const auto& to_large, const auto&) {
    std::string text;
    for (std::size_t i = 0; i < small_nodes.size(); ++i) text += large_nodes[get(to_large, i)]->name() + " ";
    found.insert(text);
    return true;
  };
  const auto same_vertex = [&](std::size_t a, std::size_t b) {
    const std::string& wanted = get(boost::vertex_name, small, a);
    return wanted.empty() || wanted == get(boost::vertex_name, large, b);
  };
  const auto same_edge = [&](const auto& a, const auto& b) {
    const unsigned wanted = get(boost::edge_weight, small, a);
    return (get(boost::edge_weight, large, b) & wanted) == wanted;
  };
  boost::vf2_subgraph_mono(small, large, note, boost::vertex_order_by_mult(small),
                           boost::edges_equivalent(same_edge).vertices_equivalent(same_vertex));
  return found;
}

std::set<std::string> by_find(const Graph& pattern, const Graph& graph) {
  std::set<std::string> found;
  for (const Match& match : find(graph, pattern, {.overlap = Overlap::all, .contained = false})) {
    std::set<const Node*> values;
    std::string text;
    for (const Argument& value : match.values()) {
      values.insert(value.node_or_null());
      text += value.node().name() + " ";
    }
    if (values.size() == match.values().size()) found.insert(text);
  }
  return found;
}

Graph small_random(std::uint64_t seed, std::size_t nodes, bool live) {
  static const std::vector<testing::OperatorForm> kForms = {{Op::call_function, "aten::relu"},
                                                            {Op::call_function, "aten::neg"},
                                                            {Op::call_function, "aten::add.Tensor", "tt"}};
  testing::RandomGraphOptions options;
  options.nodes = nodes;
  options.inputs = 2;
  options.vocabulary = &kForms;
  options.named_percent = 0;
  options.typed_percent = 0;
  options.all_live = live;
  return testing::random_graph(seed, options);
}

TEST(Isomorphism, Vf2FindsTheSameInjectiveMatches) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    Graph pattern = small_random(seed, 1 + seed % 4, true);
    for (Node* input : pattern.placeholders()) {
      if (!input->has_users()) pattern.erase_node(*input);
    }
    const Graph graph = small_random(seed + 100000, 3 + seed % 10, true);
    std::set<std::string> ours;
    try {
      ours = by_find(pattern, graph);
    } catch (const Error&) {
      continue;  // an input is returned as it is: no pattern
    }
    EXPECT_EQ(by_vf2(pattern, graph), ours) << print_graph(pattern) << print_graph(graph);
    if (::testing::Test::HasFailure()) return;
    found += ours.size();
  }
  EXPECT_GT(found, 3000u);
}

}  // namespace fx::isomorphism_test
