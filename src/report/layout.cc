#include <fxgraph/report/layout.h>

#include <algorithm>
#include <utility>

#include <fxgraph/analysis/use_def.h>

namespace fx {

namespace {

/// A box or a bend. Links go to the cells of the neighbouring layers.
struct Cell {
  std::uint32_t layer = 0;
  double width = 0;
  double x = 0;
  std::vector<std::uint32_t> above, below;
};

class LayoutMaker {
 public:
  LayoutMaker(const Graph& graph, const LayoutOptions& options) : graph_(graph), options_(options) {}

  GraphLayout make() {
    make_boxes();
    make_edges();
    fill_layers();
    for (int sweep = 0; sweep < options_.sweeps; ++sweep) sort_layers(sweep % 2 == 0);
    pack();
    for (int sweep = 0; sweep < options_.sweeps; ++sweep) straighten(sweep % 2 == 0);
    return finish();
  }

 private:
  // Sources wait until their first user needs them: parameters stand beside the operator that reads them, and so do
  // those that are passed in as inputs.
  void make_boxes() {
    NodeMap<std::uint32_t> level = levels(graph_);
    cell_of_.resize(graph_.id_bound());
    for (const Node& node : graph_.nodes()) {
      bool source = node.has_users();
      node.for_each_input([&](Node&) { source = false; });
      if (source) {
        std::uint32_t first = ~std::uint32_t{0};
        for (const Node& user : node.users()) first = std::min(first, level[user]);
        level[node] = first - 1;
      }
      cell_of_[node.id()] = add_cell(level[node], options_.box_width ? options_.box_width(node) : 160.0);
    }
  }

  void make_edges() {
    std::vector<Node*> last_user(graph_.id_bound(), nullptr);
    for (const Node& const_node : graph_.nodes()) {
      Node* user = const_cast<Node*>(&const_node);
      user->for_each_input([&](Node& value) {
        if (std::exchange(last_user[value.id()], user) != user) add_edge(value, *user);
      });
    }
  }

  void add_edge(Node& from, Node& to) {
    Edge edge{&from, &to, {}};
    std::uint32_t above = cell_of_[from.id()];
    const std::uint32_t last = cell_of_[to.id()];
    if (cells_[last].layer - cells_[above].layer <= kMaxBends) {
      for (std::uint32_t layer = cells_[above].layer + 1; layer < cells_[last].layer; ++layer) {
        const std::uint32_t bend = add_cell(layer, 8);
        link(above, bend);
        edge.bends.push_back(bend);
        above = bend;
      }
      link(above, last);
    }
    edges_.push_back(std::move(edge));
  }

  std::uint32_t add_cell(std::uint32_t layer, double width) {
    cells_.push_back({layer, width, 0, {}, {}});
    return static_cast<std::uint32_t>(cells_.size() - 1);
  }
  void link(std::uint32_t above, std::uint32_t below) {
    cells_[above].below.push_back(below);
    cells_[below].above.push_back(above);
  }

  void fill_layers() {
    for (std::uint32_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i].layer >= layers_.size()) layers_.resize(cells_[i].layer + 1);
      layers_[cells_[i].layer].push_back(i);
    }
    key_.resize(cells_.size());
    for (const auto& layer : layers_) number(layer);
  }
  void number(const std::vector<std::uint32_t>& layer) {
    double next = 0;
    for (const std::uint32_t cell : layer) cells_[cell].x = next++;
  }

  /// The mean place of the neighbours on one side; its own when there are none.
  double mean(const Cell& cell, bool above) const {
    const auto& neighbours = above ? cell.above : cell.below;
    if (neighbours.empty()) return cell.x;
    double sum = 0;
    for (const std::uint32_t n : neighbours) sum += cells_[n].x;
    return sum / static_cast<double>(neighbours.size());
  }

  template <typename Visit>
  void for_each_layer(bool downward, Visit&& visit) {
    for (std::size_t i = 0; i < layers_.size(); ++i) visit(layers_[downward ? i : layers_.size() - 1 - i]);
  }

  void sort_layers(bool downward) {
    for_each_layer(downward, [&](std::vector<std::uint32_t>& layer) {
      for (const std::uint32_t cell : layer) key_[cell] = mean(cells_[cell], downward);
      std::stable_sort(layer.begin(), layer.end(), [&](std::uint32_t a, std::uint32_t b) { return key_[a] < key_[b]; });
      number(layer);
    });
  }

  double gap(std::uint32_t left, std::uint32_t right) const {
    return (cells_[left].width + cells_[right].width) / 2 + options_.gap_x;
  }

  /// Side by side, each layer centred around 0.
  void pack() {
    for (const auto& layer : layers_) {
      double x = 0;
      for (std::size_t i = 0; i < layer.size(); ++i) {
        if (i > 0) x += gap(layer[i - 1], layer[i]);
        cells_[layer[i]].x = x;
      }
      for (const std::uint32_t cell : layer) cells_[cell].x -= x / 2;
    }
  }

  // Cells want to be at the mean of their neighbours. Pushing from the left and from the right both keep the order and
  // the gaps, and so does the mean of the two.
  void straighten(bool downward) {
    for_each_layer(downward, [&](const std::vector<std::uint32_t>& layer) {
      for (const std::uint32_t cell : layer) key_[cell] = mean(cells_[cell], downward);
      std::vector<double> left(layer.size()), right(layer.size());
      for (std::size_t i = 0; i < layer.size(); ++i) {
        left[i] = key_[layer[i]];
        if (i > 0) left[i] = std::max(left[i], left[i - 1] + gap(layer[i - 1], layer[i]));
      }
      for (std::size_t i = layer.size(); i-- > 0;) {
        right[i] = key_[layer[i]];
        if (i + 1 < layer.size()) right[i] = std::min(right[i], right[i + 1] - gap(layer[i], layer[i + 1]));
      }
      for (std::size_t i = 0; i < layer.size(); ++i) cells_[layer[i]].x = (left[i] + right[i]) / 2;
    });
  }

  GraphLayout finish() {
    double left = 0, right = 0;
    for (const Cell& cell : cells_) {
      left = std::min(left, cell.x - cell.width / 2);
      right = std::max(right, cell.x + cell.width / 2);
    }
    const double margin = options_.gap_x;
    const double step = options_.box_height + options_.gap_y;
    const auto place = [&](std::uint32_t cell) {
      return Point{cells_[cell].x - left + margin, margin + options_.box_height / 2 + step * cells_[cell].layer};
    };
    GraphLayout layout;
    layout.width = right - left + 2 * margin;
    layout.height = 2 * margin + step * static_cast<double>(layers_.size());
    for (const Node& node : graph_.nodes()) {
      const std::uint32_t cell = cell_of_[node.id()];
      layout.boxes.push_back({const_cast<Node*>(&node), place(cell), cells_[cell].width, options_.box_height});
    }
    for (const Edge& edge : edges_) {
      LayoutEdge& drawn = layout.edges.emplace_back();
      drawn.from = edge.from;
      drawn.to = edge.to;
      Point start = place(cell_of_[edge.from->id()]), end = place(cell_of_[edge.to->id()]);
      start.y += options_.box_height / 2;
      end.y -= options_.box_height / 2;
      drawn.points.push_back(start);
      for (const std::uint32_t bend : edge.bends) drawn.points.push_back(place(bend));
      drawn.points.push_back(end);
    }
    return layout;
  }

  struct Edge {
    Node *from, *to;
    std::vector<std::uint32_t> bends;
  };

  const Graph& graph_;
  const LayoutOptions& options_;
  std::vector<Cell> cells_;
  std::vector<std::uint32_t> cell_of_;  // by id
  std::vector<Edge> edges_;
  std::vector<std::vector<std::uint32_t>> layers_;
  std::vector<double> key_;  // by cell
};

}  // namespace

GraphLayout lay_out(const Graph& graph, const LayoutOptions& options) { return LayoutMaker(graph, options).make(); }

}  // namespace fx
