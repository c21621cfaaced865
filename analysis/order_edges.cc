#include <fxgraph/analysis/order_edges.h>

namespace fx {

OrderEdges::OrderEdges(const Graph& graph, std::span<const OrderEdge> edges)
    : after_(make_table(graph.id_bound(), edges, &OrderEdge::before, &OrderEdge::after)),
      before_(make_table(graph.id_bound(), edges, &OrderEdge::after, &OrderEdge::before)) {}

// A counting sort by `key`: it keeps the order of the edges of one node.
OrderEdges::Table OrderEdges::make_table(std::uint32_t ids, std::span<const OrderEdge> edges, Node* OrderEdge::*key,
                                         Node* OrderEdge::*value) {
  Table table;
  if (edges.empty()) return table;
  table.starts.assign(ids + 1, 0);
  for (const OrderEdge& edge : edges) ++table.starts[(edge.*key)->id() + 1];
  for (std::uint32_t id = 0; id < ids; ++id) table.starts[id + 1] += table.starts[id];
  table.nodes.resize(edges.size());
  std::vector<std::uint32_t> next(table.starts.begin(), table.starts.end() - 1);
  for (const OrderEdge& edge : edges) table.nodes[next[(edge.*key)->id()]++] = edge.*value;
  return table;
}

}  // namespace fx
