// fx::undirected(view): the view with its edges read both ways, for Boost.Graph's algorithms on undirected graphs
// (connected components, articulation points, minimum cut).
//
// A model of VertexListGraph, EdgeListGraph, IncidenceGraph and AdjacencyGraph. The edges at a vertex are its uses
// first, then its inputs; an edge is one edge from whichever end it is seen. Costs, lifetimes and vertex_index are
// those of GraphView.
#pragma once

#include <fxgraph/analysis/view.h>

namespace fx {

struct IncidentEdge {
  ValueEdge edge;
  bool backward = false;  ///< seen from the user

  friend bool operator==(const IncidentEdge& a, const IncidentEdge& b) { return a.edge == b.edge; }
};

namespace internal {

class IncidentIterator : public ViewIterator<IncidentIterator, IncidentEdge> {
 public:
  IncidentIterator() = default;
  IncidentIterator(OutEdgeIterator out, OutEdgeIterator out_end, InEdgeIterator in)
      : out_(out), out_end_(out_end), in_(in) {}

 private:
  friend class boost::iterator_core_access;
  IncidentEdge dereference() const { return out_ != out_end_ ? IncidentEdge{*out_, false} : IncidentEdge{*in_, true}; }
  void increment() {
    if (out_ != out_end_) {
      ++out_;
    } else {
      ++in_;
    }
  }
  bool equal(const IncidentIterator& other) const { return out_ == other.out_ && in_ == other.in_; }

  OutEdgeIterator out_, out_end_;
  InEdgeIterator in_;
};

struct ToIncident {
  IncidentEdge operator()(const ValueEdge& edge) const { return {edge, false}; }
};
struct FarEnd {
  Node* operator()(const IncidentEdge& incident) const {
    return incident.backward ? incident.edge.source : incident.edge.target;
  }
};

}  // namespace internal

class UndirectedView {
 public:
  using vertex_descriptor = Node*;
  using edge_descriptor = IncidentEdge;
  using directed_category = boost::undirected_tag;
  using edge_parallel_category = boost::allow_parallel_edge_tag;
  struct traversal_category : virtual boost::incidence_graph_tag,
                              virtual boost::adjacency_graph_tag,
                              virtual boost::vertex_list_graph_tag,
                              virtual boost::edge_list_graph_tag {};
  using vertex_iterator = GraphView::vertex_iterator;
  using edge_iterator =
      boost::transform_iterator<internal::ToIncident, GraphView::edge_iterator, IncidentEdge, IncidentEdge>;
  using out_edge_iterator = internal::IncidentIterator;
  using adjacency_iterator = boost::transform_iterator<internal::FarEnd, internal::IncidentIterator, Node*, Node*>;
  using in_edge_iterator = void;
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;
  static vertex_descriptor null_vertex() { return nullptr; }

  explicit UndirectedView(const GraphView& directed) : directed_(directed) {}
  const GraphView& directed() const { return directed_; }

 private:
  GraphView directed_;
};

inline const UndirectedView undirected(const GraphView& view) { return UndirectedView(view); }

inline auto vertices(const UndirectedView& view) { return vertices(view.directed()); }
inline std::size_t num_vertices(const UndirectedView& view) { return num_vertices(view.directed()); }
inline std::pair<UndirectedView::edge_iterator, UndirectedView::edge_iterator> edges(const UndirectedView& view) {
  const auto [begin, end] = edges(view.directed());
  return {UndirectedView::edge_iterator(begin, {}), UndirectedView::edge_iterator(end, {})};
}
inline std::size_t num_edges(const UndirectedView& view) { return num_edges(view.directed()); }
inline Node* source(const IncidentEdge& e, const UndirectedView&) { return e.backward ? e.edge.target : e.edge.source; }
inline Node* target(const IncidentEdge& e, const UndirectedView&) { return internal::FarEnd()(e); }

inline std::pair<UndirectedView::out_edge_iterator, UndirectedView::out_edge_iterator> out_edges(
    Node* node, const UndirectedView& view) {
  const auto [out, out_end] = out_edges(node, view.directed());
  const auto [in, in_end] = in_edges(node, view.directed());
  return {{out, out_end, in}, {out_end, out_end, in_end}};
}
inline std::pair<UndirectedView::adjacency_iterator, UndirectedView::adjacency_iterator> adjacent_vertices(
    Node* node, const UndirectedView& view) {
  const auto [begin, end] = out_edges(node, view);
  return {UndirectedView::adjacency_iterator(begin, {}), UndirectedView::adjacency_iterator(end, {})};
}
inline std::size_t out_degree(Node* node, const UndirectedView& view) { return degree(node, view.directed()); }

inline VertexIndexMap get(boost::vertex_index_t, const UndirectedView& view) { return VertexIndexMap(view.directed()); }
inline std::size_t get(boost::vertex_index_t, const UndirectedView& view, const Node* node) {
  return view.directed().index(*node);
}

}  // namespace fx

namespace boost {

using fx::out_edges;  // as in analysis/view.h
using fx::source;
using fx::target;
using fx::vertices;

template <>
struct property_map<fx::UndirectedView, vertex_index_t> {
  using type = fx::VertexIndexMap;
  using const_type = fx::VertexIndexMap;
};

}  // namespace boost
