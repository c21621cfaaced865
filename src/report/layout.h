// A layered drawing of a graph: where each node's box and each edge's bends go.
//
// The method of K. Sugiyama, S. Tagawa, M. Toda ("Methods for Visual Understanding of Hierarchical System Structures",
// 1981) on an order that is topological already: layers by longest path, with attributes and other sources pulled down
// to their first user; long edges get a bend per layer; barycentre sweeps to reduce crossings; averaging sweeps to
// straighten. Edges over more than kMaxBends layers are drawn directly. Complexity: O((nodes + bends) log nodes) a
// sweep, with a fixed number of sweeps.
#pragma once

#include <functional>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

struct Point {
  double x = 0;
  double y = 0;
};

struct LayoutBox {
  Node* node = nullptr;
  Point centre;
  double width = 0, height = 0;
};

struct LayoutEdge {
  Node* from = nullptr;
  Node* to = nullptr;
  std::vector<Point> points;  ///< from the lower side of one box to the upper side of the other
};

struct GraphLayout {
  std::vector<LayoutBox> boxes;   ///< in graph order
  std::vector<LayoutEdge> edges;  ///< one for each pair of value and user, by user in graph order
  double width = 0, height = 0;
};

struct LayoutOptions {
  std::function<double(const Node&)> box_width;  ///< without it: 160
  double box_height = 36;
  double gap_x = 24, gap_y = 36;
  int sweeps = 8;
};

inline constexpr std::uint32_t kMaxBends = 64;

GraphLayout lay_out(const Graph& graph, const LayoutOptions& options = {});

}  // namespace fx
