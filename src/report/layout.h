// The picture of a graph by its outline: where boxes stand inside their groups, and the ways of the edges.
//
// Every group is laid out by itself, innermost first, and is a box to the one around it. An edge that enters or leaves
// a group passes a port on its upper or lower side, one for each value. A group is as wide as it needs to be when it
// and all inside it are open; how high it is says stack(), so that a picture may open and close groups without a new
// layout. Sizes are pixels. Complexity: O((nodes + uses · depth of groups) log nodes); see layered.h for a group.
#pragma once

#include <functional>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/report/layered.h>
#include <fxgraph/report/outline.h>

namespace fx {

/// What a group holds: where it stands from left to right, in rows.
struct GroupLayout {
  /// A node or a smaller group.
  struct Box {
    const Node* node = nullptr;  ///< null: a smaller group
    std::uint32_t group = 0;     ///< the smaller group
    std::uint32_t row = 0;       ///< less than GroupLayout::rows
    double x = 0, width = 0;     ///< x is that of the left side
  };
  static constexpr std::int32_t kPort = -1;  ///< instead of a box: the side of the group
  /// Part of the way from a value to its users: between two boxes, or to and from a port of the group.
  struct Edge {
    const Node* source = nullptr;           ///< the value
    std::int32_t from = kPort, to = kPort;  ///< boxes; a port on the upper side, on the lower side
    double from_offset = 0, to_offset = 0;  ///< from the middle of the box
    std::vector<Run> way{};                 ///< from the row below `from`, or the first, on
  };
  double width = 0;           ///< of the group, with its frame
  std::uint32_t rows = 0;     ///< those of ports included
  std::vector<Box> boxes{};   ///< in the order of their first nodes, but for those to which edges would go up
  std::vector<Edge> edges{};  ///< in the order of their values
};

/// What the boxes are like.
struct LayoutOptions {
  std::function<double(const Node&)> node_width = [](const Node&) { return 160.0; };     ///< of its box
  std::function<double(std::uint32_t)> group_width = [](std::uint32_t) { return 0.0; };  ///< at least
  std::function<bool(const Node&)> hidden = [](const Node&) { return false; };           ///< left out
};

/// Lays out every group of `outline`; a group in which nothing is shown stays empty.
std::vector<GroupLayout> lay_out(const Graph& graph, const Outline& outline, const LayoutOptions& options = {});

/// A place in a picture, from the upper left corner.
struct Point {
  double x = 0, y = 0;
};

/// A group with its rows one below the other.
struct StackedGroup {
  std::vector<double> top, bottom, heights;  ///< of the rows; of the boxes
  double height = 0;                         ///< of the group, with its frame

  /// Where a box stands: in the middle of its row.
  double box_top(const GroupLayout& layout, std::size_t box) const;
  /// The way of an edge, down from the lower side of one box to the upper side of the other.
  std::vector<Point> points(const GroupLayout& layout, const GroupLayout::Edge& edge) const;
};

/// Stacks the rows of a group under a head of that height, with boxes of those heights.
StackedGroup stack(const GroupLayout& layout, double head, std::vector<double> heights);

/// Pixels: the head of a frame, inside its sides, between rows of boxes, between those and ports.
inline constexpr double kFrameHead = 26, kFramePadding = 14, kRowGap = 34, kPortGap = 22;

}  // namespace fx
