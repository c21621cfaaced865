// fx::view(graph): a Graph as Boost.Graph sees one, without copying it.
//
//   std::vector<fx::Node*> order;
//   boost::topological_sort(fx::view(graph), std::back_inserter(order));
//
// A model of VertexListGraph, EdgeListGraph, AdjacencyGraph and BidirectionalGraph. A vertex is a Node*; an edge goes
// from a value to the node that uses it, one edge per use (`x + x` gives two parallel ones). With OrderEdges the view
// also has those, after the uses. The graph is acyclic, so there are no loops.
//
// `vertex_index` is dense, 0 … num_vertices - 1, as BGL's algorithms need it for their own tables: it is Node::id()
// while the graph never erased a node, and otherwise the place in the order, from a table that the view makes (4 bytes
// an id). Keep property maps of your own in a NodeMap, which needs no such table: node_property(map).
//
// Complexity: view() is O(1), or O(ids) after an erase; vertices, in and out edges are O(1) to begin; num_edges and
// out_degree count. A view is cheap to copy and refers to the graph (and order edges): both must outlive it, unchanged.
// Thread-safety: as the graph's const functions.
#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/property_map/property_map.hpp>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/analysis/view_iterators.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

/// The graph as Boost.Graph's concepts see it: cheap to copy, made by view().
class GraphView {
 public:
  /// The types that Boost.Graph's concepts ask for.
  /// @{
  using vertex_descriptor = Node*;
  using edge_descriptor = ValueEdge;
  using directed_category = boost::bidirectional_tag;
  using edge_parallel_category = boost::allow_parallel_edge_tag;
  /// Which of Boost.Graph's concepts it models.
  struct traversal_category : virtual boost::bidirectional_graph_tag,
                              virtual boost::adjacency_graph_tag,
                              virtual boost::vertex_list_graph_tag,
                              virtual boost::edge_list_graph_tag {};
  using vertex_iterator = internal::VertexIterator;
  using edge_iterator = internal::EdgeIterator;
  using out_edge_iterator = internal::OutEdgeIterator;
  using in_edge_iterator = internal::InEdgeIterator;
  using adjacency_iterator = internal::AdjacencyIterator;
  using inv_adjacency_iterator = internal::InvAdjacencyIterator;
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;
  /// @}
  /// Stands for no vertex: null.
  static vertex_descriptor null_vertex() { return nullptr; }

  /// What view() returns; `order` may be null.
  explicit GraphView(const Graph& graph, const OrderEdges* order = nullptr) : graph_(&graph), order_(order) {
    if (graph.size() != graph.id_bound()) number_by_order();
  }

  /// The graph that is looked at.
  const Graph& graph() const { return *graph_; }
  /// The edges beside those of values, or null.
  const OrderEdges* order_edges() const { return order_; }
  /// The vertex's number for Boost.Graph's tables: below num_vertices.
  std::uint32_t index(const Node& node) const { return index_ ? (*index_)[node.id()] : node.id(); }

 private:
  void number_by_order() {
    auto index = std::make_shared<std::vector<std::uint32_t>>(graph_->id_bound());
    std::uint32_t next = 0;
    for (const Node& node : graph_->nodes()) (*index)[node.id()] = next++;
    index_ = std::move(index);
  }

  const Graph* graph_;
  const OrderEdges* order_;
  std::shared_ptr<const std::vector<std::uint32_t>> index_;  // null: ids have no holes and are the index
};

// Const results, because some algorithms take their graph as `Graph&`: of a const temporary they make a `const Graph&`.
/// The edges of values only; `graph` must outlive the view. O(1), or O(ids) where nodes were erased.
inline const GraphView view(const Graph& graph) { return GraphView(graph); }
/// With edges that keep effects in order; `order` must outlive the view.
inline const GraphView view(const Graph& graph, const OrderEdges& order) { return GraphView(graph, &order); }
const GraphView view(const Graph&&) = delete;
const GraphView view(const Graph&, const OrderEdges&&) = delete;

// ── VertexListGraph, EdgeListGraph ───────────────────────────────────────────────────────────────────────────────────

/// All nodes, in the order of the graph.
inline std::pair<GraphView::vertex_iterator, GraphView::vertex_iterator> vertices(const GraphView& view) {
  const auto nodes = view.graph().nodes();
  return {GraphView::vertex_iterator(nodes.begin()), GraphView::vertex_iterator(nodes.end())};
}
/// How many nodes there are. O(1).
inline std::size_t num_vertices(const GraphView& view) { return view.graph().size(); }

/// All edges, by their sources in the order of the graph.
inline std::pair<GraphView::edge_iterator, GraphView::edge_iterator> edges(const GraphView& view) {
  const auto [begin, end] = vertices(view);
  return {{begin, end, view.order_edges()}, {end, end, view.order_edges()}};
}
/// O(vertices + edges).
inline std::size_t num_edges(const GraphView& view) {
  std::size_t count = view.order_edges() ? view.order_edges()->size() : 0;
  for (const Node& node : view.graph().nodes()) node.for_each_input([&](Node&) { ++count; });
  return count;
}
/// Where the edge comes from: the value that is used, or what must run first.
inline Node* source(const ValueEdge& edge, const GraphView&) { return edge.source; }
/// Where the edge leads to: the user, or what must run later.
inline Node* target(const ValueEdge& edge, const GraphView&) { return edge.target; }

// ── BidirectionalGraph, AdjacencyGraph ───────────────────────────────────────────────────────────────────────────────

/// The uses of `node`, one edge each, then its order edges.
inline std::pair<GraphView::out_edge_iterator, GraphView::out_edge_iterator> out_edges(Node* node,
                                                                                       const GraphView& view) {
  return {internal::first_out_edge(node, view.order_edges()), internal::past_out_edges(node, view.order_edges())};
}
/// What `node` uses, one edge for each time that an argument names it, then its order edges.
inline std::pair<GraphView::in_edge_iterator, GraphView::in_edge_iterator> in_edges(Node* node, const GraphView& view) {
  return {internal::first_in_edge(node, view.order_edges()), internal::past_in_edges(node, view.order_edges())};
}
/// The targets of out_edges: a user that names `node` twice comes twice.
inline std::pair<GraphView::adjacency_iterator, GraphView::adjacency_iterator> adjacent_vertices(
    Node* node, const GraphView& view) {
  const auto [begin, end] = out_edges(node, view);
  return {GraphView::adjacency_iterator(begin, {}), GraphView::adjacency_iterator(end, {})};
}
/// The sources of in_edges: a value that is named twice comes twice.
inline std::pair<GraphView::inv_adjacency_iterator, GraphView::inv_adjacency_iterator> inv_adjacent_vertices(
    Node* node, const GraphView& view) {
  const auto [begin, end] = in_edges(node, view);
  return {GraphView::inv_adjacency_iterator(begin, {}), GraphView::inv_adjacency_iterator(end, {})};
}
/// O(uses).
inline std::size_t out_degree(Node* node, const GraphView& view) {
  const auto [begin, end] = out_edges(node, view);
  return static_cast<std::size_t>(std::distance(begin, end));
}
/// O(arguments).
inline std::size_t in_degree(Node* node, const GraphView& view) {
  const auto [begin, end] = in_edges(node, view);
  return static_cast<std::size_t>(std::distance(begin, end));
}
/// Edges in and out. O(uses + arguments).
inline std::size_t degree(Node* node, const GraphView& view) { return in_degree(node, view) + out_degree(node, view); }

// ── Property maps ────────────────────────────────────────────────────────────────────────────────────────────────────

/// vertex_index: see the top of this file.
class VertexIndexMap {
 public:
  /// The types that Boost.Graph's property maps have.
  /// @{
  using key_type = Node*;
  using value_type = std::size_t;
  using reference = std::size_t;
  using category = boost::readable_property_map_tag;
  /// @}

  /// Keeps a copy of the view.
  explicit VertexIndexMap(const GraphView& view) : view_(view) {}
  /// The vertex's index.
  friend std::size_t get(const VertexIndexMap& map, const Node* node) { return map.view_.index(*node); }

 private:
  GraphView view_;
};

/// vertex_name: the node's name, for write_graphviz and its kind.
class VertexNameMap {
 public:
  /// The types that Boost.Graph's property maps have.
  /// @{
  using key_type = Node*;
  using value_type = std::string;
  using reference = std::string;
  using category = boost::readable_property_map_tag;
  /// @}

  /// The node's name, made anew at each call.
  friend std::string get(const VertexNameMap&, const Node* node) { return node->name(); }
};

/// What Boost.Graph's algorithms ask for by itself; pass no map to them and they call these.
/// @{
inline VertexIndexMap get(boost::vertex_index_t, const GraphView& view) { return VertexIndexMap(view); }
inline std::size_t get(boost::vertex_index_t, const GraphView& view, const Node* node) { return view.index(*node); }
inline VertexNameMap get(boost::vertex_name_t, const GraphView&) { return {}; }
inline std::string get(boost::vertex_name_t, const GraphView&, const Node* node) { return node->name(); }
/// @}

/// A property map over a side table: algorithms read and write `map[node]`.
template <typename T>
class NodeProperty {
 public:
  /// The types that Boost.Graph's property maps have.
  /// @{
  using key_type = Node*;
  using value_type = T;
  using reference = typename std::vector<T>::reference;
  using category = std::conditional_t<std::is_same_v<reference, T&>, boost::lvalue_property_map_tag,
                                      boost::read_write_property_map_tag>;
  /// @}

  /// Refers to `map`, which must outlive it.
  explicit NodeProperty(NodeMap<T>& map) : map_(&map) {}
  /// Reads and writes the table; reading a node that is newer than the table lets it grow.
  /// @{
  reference operator[](const Node* node) const { return (*map_)[*node]; }
  friend reference get(const NodeProperty& map, const Node* node) { return (*map.map_)[*node]; }
  friend void put(const NodeProperty& map, const Node* node, const T& value) { (*map.map_)[*node] = value; }
  /// @}

 private:
  NodeMap<T>* map_;
};

/// Makes a property map of a table of one's own; `map` must outlive it.
template <typename T>
NodeProperty<T> node_property(NodeMap<T>& map) {
  return NodeProperty<T>(map);
}

}  // namespace fx

namespace boost {

// Some algorithms call these as boost::target and the like, which argument-dependent lookup cannot reach: include this
// header before theirs.
using fx::out_edges;
using fx::source;
using fx::target;
using fx::vertices;

template <>
struct property_map<fx::GraphView, vertex_index_t> {
  using type = fx::VertexIndexMap;
  using const_type = fx::VertexIndexMap;
};
template <>
struct property_map<fx::GraphView, vertex_name_t> {
  using type = fx::VertexNameMap;
  using const_type = fx::VertexNameMap;
};

}  // namespace boost
