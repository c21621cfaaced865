// Boxes in rows: in which row each stands, at which x, and the ways of edges past the rows between.
//
// The method of K. Sugiyama, S. Tagawa, M. Toda ("Methods for Visual Understanding of Hierarchical System Structures",
// 1981): rows by longest path, sources just above what first uses them; a bend for each row that an edge passes, shared
// by the edges of a value; barycentre sweeps against crossings; averaging sweeps to straighten. Edges over more than
// kMaxBends rows, and those that go back up, take a lane beside everything. Heights are not asked for: rows are stacked
// when it is known how high their boxes are. Complexity: O((boxes + bends) log boxes) a sweep, a fixed number of
// sweeps.
#pragma once

#include <cstdint>
#include <vector>

namespace fx {

/// A straight part of an edge, down along `rows` rows; up when negative.
struct Run {
  double x = 0;
  std::int32_t rows = 0;
};

/// What is to be laid out, and where it goes. Boxes come in an order in which most edges point forward.
struct LayeredBoxes {
  static constexpr std::uint32_t kMaxBends = 40;  ///< edges over more rows take a lane

  /// A box, or a port through which an edge enters or leaves the whole.
  struct Box {
    double width = 0;
    int end = 0;            ///< -1 and 1: a port, which stands in the first or last row
    std::uint32_t row = 0;  ///< found
    double x = 0;           ///< found: of the middle
  };
  /// A way from one box down to another.
  struct Edge {
    std::uint32_t source = 0;               ///< edges of one source come from one place
    std::uint32_t from = 0, to = 0;         ///< boxes
    double from_offset = 0, to_offset = 0;  ///< from the middles of the boxes
    std::vector<Run> way{};                 ///< found: through the rows between, and those of ports
  };
  std::vector<Box> boxes{};
  std::vector<Edge> edges{};
  std::uint32_t sources = 0;  ///< Edge::source is less
  std::uint32_t rows = 0;     ///< found
  double width = 0;           ///< found; x goes from 0 to it
};

/// Fills in what is found; see the top of this file.
void lay_out(LayeredBoxes& boxes);

}  // namespace fx
