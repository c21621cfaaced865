#include <fxgraph/report/layered.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace fx {

namespace {

constexpr double kGap = 22, kLineGap = 6, kLineWidth = 8, kLaneStep = 8;
constexpr double kFar = 1e9;
constexpr int kSweeps = 10, kRounds = 4;
constexpr std::uint32_t kAloneInRow = 4;
constexpr std::uint32_t kNone = ~std::uint32_t{0};

struct Link {
  std::uint32_t cell;
  double offset;  // how far right of that cell this one is wished
  double port;    // where in that cell the edge ends, from -1/2 to 1/2
};

/// A box or a bend.
struct Cell {
  std::uint32_t row = 0;
  double width = 0;
  bool is_line = false;
  double x = 0;
  std::vector<Link> above{}, below{};
};

class LayeredMaker {
 public:
  explicit LayeredMaker(LayeredBoxes& layered) : layered_(layered), bends_(layered.sources) {}

  void make() {
    assign_rows();
    add_bends();
    fill_rows();
    sweep([this](Row& row, bool downward) { sort(row, downward); });
    for (const auto& row : rows_) pack(row);
    sweep([this](Row& row, bool downward) { straighten(row, downward); });
    straighten_strands();
    finish();
    add_lanes();
  }

 private:
  using Row = std::vector<std::uint32_t>;

  void assign_rows() {
    auto& boxes = layered_.boxes;
    const bool has_ports = std::any_of(boxes.begin(), boxes.end(), [](auto& box) { return box.end < 0; });
    std::vector<Row> into(boxes.size());
    std::vector<std::uint32_t> first_user(boxes.size(), std::numeric_limits<std::uint32_t>::max());
    for (const auto& edge : layered_.edges)
      if (edge.from < edge.to) into[edge.to].push_back(edge.from);
    std::vector<bool> linked(boxes.size(), false);
    for (const auto& edge : layered_.edges) linked[edge.from] = linked[edge.to] = true;
    std::uint32_t last = 0, alone = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (boxes[i].end < 0) continue;
      boxes[i].row = has_ports + (linked[i] ? 0 : alone++ / kAloneInRow);
      for (const std::uint32_t from : into[i]) boxes[i].row = std::max(boxes[i].row, boxes[from].row + 1);
      for (const std::uint32_t from : into[i]) first_user[from] = std::min(first_user[from], boxes[i].row);
      last = std::max(last, boxes[i].row);
    }
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (boxes[i].end > 0) boxes[i].row = last;
      if (boxes[i].end == 0 && into[i].empty() && first_user[i] <= last) boxes[i].row = first_user[i] - 1;
    }
    layered_.rows = boxes.empty() ? 0 : last + 1;
  }

  std::uint32_t row_of(std::uint32_t box) const { return layered_.boxes[box].row; }
  bool is_port(std::uint32_t box) const { return layered_.boxes[box].end != 0; }
  bool takes_lane(const LayeredBoxes::Edge& edge) const {
    return row_of(edge.to) <= row_of(edge.from) || row_of(edge.to) - row_of(edge.from) > LayeredBoxes::kMaxBends;
  }

  void add_bends() {
    for (const auto& box : layered_.boxes) cells_.push_back({box.row, box.width, box.end != 0});
    // What follows a box is placed below where the box itself hangs, not below where its own edge leaves: else a row of
    // boxes alike, each left a little aside, would drift away.
    std::vector<const LayeredBoxes::Edge*> hangs(layered_.boxes.size(), nullptr);
    for (const auto& edge : layered_.edges)
      if (!takes_lane(edge) && (!hangs[edge.to] || (edge.from > hangs[edge.to]->from && !is_port(edge.from))))
        hangs[edge.to] = &edge;
    for (const auto& edge : layered_.edges) {
      if (takes_lane(edge)) continue;
      const double from_offset = hangs[edge.from] && !is_port(edge.to) ? hangs[edge.from]->to_offset : edge.from_offset;
      const std::uint32_t between = row_of(edge.to) - row_of(edge.from) - 1;
      Row& bends = bends_[edge.source];
      while (bends.size() < between) {
        const auto bend = static_cast<std::uint32_t>(cells_.size());
        cells_.push_back({row_of(edge.from) + static_cast<std::uint32_t>(bends.size()) + 1, kLineWidth, true});
        bends.empty() ? link(edge.from, bend, edge.from_offset, edge.from_offset) : link(bends.back(), bend, 0);
        bends.push_back(bend);
      }
      between == 0 ? link(edge.from, edge.to, from_offset - edge.to_offset, edge.from_offset, edge.to_offset)
                   : link(bends[between - 1], edge.to, -edge.to_offset, 0, edge.to_offset);
    }
  }
  void link(std::uint32_t above, std::uint32_t below, double offset, double leaves = 0, double enters = 0) {
    cells_[above].below.push_back({below, -offset, enters / cells_[below].width});
    cells_[below].above.push_back({above, offset, leaves / cells_[above].width});
  }

  void fill_rows() {
    rows_.resize(layered_.rows);
    for (std::uint32_t i = 0; i < cells_.size(); ++i) rows_[cells_[i].row].push_back(i);
    key_.resize(cells_.size());
    index_.resize(cells_.size());
    for (const Row& row : rows_) number(row);
  }
  void number(const Row& row) {
    for (std::uint32_t i = 0; i < row.size(); ++i) cells_[row[i]].x = index_[row[i]] = i;
  }

  template <typename Visit>
  void for_each_row(bool downward, Visit&& visit) {
    for (std::size_t i = 0; i < rows_.size(); ++i) visit(rows_[downward ? i : rows_.size() - 1 - i]);
  }

  template <typename Visit>
  void sweep(Visit&& visit) {
    for (int i = 0; i < kSweeps; ++i) for_each_row(i % 2 == 0, [&](Row& row) { visit(row, i % 2 == 0); });
  }

  /// The mean place that the neighbours on one side wish; its own when there are none.
  double wish(const Cell& cell, bool above, double Link::*part) const {
    const auto& links = above ? cell.above : cell.below;
    if (links.empty()) return cell.x;
    double sum = 0;
    for (const Link& link : links) sum += cells_[link.cell].x + link.*part;
    return sum / static_cast<double>(links.size());
  }

  void sort(Row& row, bool downward) {
    for (const std::uint32_t cell : row) key_[cell] = wish(cells_[cell], downward, &Link::port);
    std::stable_sort(row.begin(), row.end(), [&](std::uint32_t a, std::uint32_t b) { return key_[a] < key_[b]; });
    number(row);
  }

  double gap(std::uint32_t left, std::uint32_t right) const {
    const double between = cells_[left].is_line && cells_[right].is_line ? kLineGap : kGap;
    return (cells_[left].width + cells_[right].width) / 2 + between;
  }

  /// Side by side, centred around 0.
  void pack(const Row& row) {
    double x = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) x += gap(row[i - 1], row[i]);
      cells_[row[i]].x = x;
    }
    for (const std::uint32_t cell : row) cells_[cell].x -= x / 2;
  }

  // Pushing from the left and from the right both keep the order and the gaps, and so does the mean of the two.
  void straighten(Row& row, bool downward) {
    std::vector<double> left(row.size()), right(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) left[i] = right[i] = wish(cells_[row[i]], downward, &Link::offset);
    for (std::size_t i = 1; i < row.size(); ++i) left[i] = std::max(left[i], left[i - 1] + gap(row[i - 1], row[i]));
    for (std::size_t i = row.size(); i-- > 1;)
      right[i - 1] = std::min(right[i - 1], right[i] - gap(row[i - 1], row[i]));
    for (std::size_t i = 0; i < row.size(); ++i) cells_[row[i]].x = (left[i] + right[i]) / 2;
  }

  // A strand is a way down along the main edges of its cells. The sweeps leave strands crooked, and slanted where edges
  // of the side pull; so each is put upright as far as the neighbours in the rows let it, then where its other edges
  // wish it, some rounds long.
  void straighten_strands() {
    std::vector<std::uint32_t> below(cells_.size(), kNone), above(cells_.size(), kNone);
    const std::vector<std::uint32_t> downward = reach(true), upward = reach(false);
    for (std::uint32_t cell = 0; cell < cells_.size(); ++cell)
      below[cell] = main_cell(cell, cells_[cell].below, downward);
    for (std::uint32_t cell = 0; cell < cells_.size(); ++cell) {
      const std::uint32_t from = main_cell(cell, cells_[cell].above, upward);
      if (from != kNone && below[from] == cell) above[cell] = from;
    }
    for (int round = 0; round < kRounds; ++round) {
      for (std::uint32_t first = 0; first < cells_.size(); ++first) {
        if (above[first] != kNone) continue;
        std::vector<std::uint32_t> strand{first};
        while (below[strand.back()] != kNone && above[below[strand.back()]] == strand.back())
          strand.push_back(below[strand.back()]);
        put_upright(strand, round > 0);
      }
    }
  }

  bool is_bend(std::uint32_t cell) const { return cell >= layered_.boxes.size(); }
  /// How many boxes follow each other from a cell on, row by row.
  std::vector<std::uint32_t> reach(bool downward) {
    std::vector<std::uint32_t> length(cells_.size(), 0);
    for_each_row(!downward, [&](const Row& row) {
      for (const std::uint32_t cell : row) {
        for (const Link& link : downward ? cells_[cell].below : cells_[cell].above)
          if (!is_bend(cell) && !is_bend(link.cell)) length[cell] = std::max(length[cell], length[link.cell] + 1);
      }
    });
    return length;
  }
  /// The cell that `cell` is to stand under or above: a long edge stays one, a box keeps to the box that most follow,
  /// the middle one if there are several.
  std::uint32_t main_cell(std::uint32_t cell, const std::vector<Link>& links,
                          const std::vector<std::uint32_t>& reach) const {
    const auto rank = [&](std::uint32_t other) { return std::pair(is_bend(other) == is_bend(cell), reach[other]); };
    std::vector<std::uint32_t> best;
    for (const Link& link : links) {
      if (!best.empty() && rank(link.cell) < rank(best[0])) continue;
      if (!best.empty() && rank(best[0]) < rank(link.cell)) best.clear();
      best.push_back(link.cell);
    }
    if (best.empty()) return kNone;
    const auto middle = best.begin() + static_cast<std::ptrdiff_t>((best.size() - 1) / 2);
    std::nth_element(best.begin(), middle, best.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return index_[a] < index_[b]; });
    return *middle;
  }

  /// Moves the cells to one x each, as their offsets say, in as few parts as there is room for.
  void put_upright(const std::vector<std::uint32_t>& strand, bool by_others) {
    double low = std::numeric_limits<double>::lowest(), high = std::numeric_limits<double>::max();
    double shift = 0, sum = 0, links = 0, all = 0;
    std::vector<std::pair<std::uint32_t, double>> part;  // cells, and how far right of the first each stands
    const auto put = [&] {
      const double x = std::clamp(links > 0 ? sum / links : all / static_cast<double>(part.size()), low, high);
      for (const auto& [cell, right] : part) cells_[cell].x = x + right;
      part.clear();
      sum = links = all = 0;
    };
    for (std::size_t i = 0; i < strand.size(); ++i) {
      const Cell& cell = cells_[strand[i]];
      const Row& row = rows_[cell.row];
      const std::size_t at = index_[strand[i]];
      if (i > 0) {
        shift += std::find_if(cell.above.begin(), cell.above.end(), [&](auto& link) {
                   return link.cell == strand[i - 1];
                 })->offset;
      }
      const double left = at > 0 ? cells_[row[at - 1]].x + gap(row[at - 1], row[at]) - shift : -kFar;
      const double right = at + 1 < row.size() ? cells_[row[at + 1]].x - gap(row[at], row[at + 1]) - shift : kFar;
      if (!part.empty() && std::max(low, left) > std::min(high, right)) put(), low = -kFar, high = kFar;
      low = std::max(low, left), high = std::max(low, std::min(high, right));
      part.emplace_back(strand[i], shift);
      all += cell.x - shift;
      for (const auto* side : {&cell.above, &cell.below}) {
        for (const Link& link : *side) {
          const bool own =
              (i > 0 && link.cell == strand[i - 1]) || (i + 1 < strand.size() && link.cell == strand[i + 1]);
          if (by_others && !own) sum += cells_[link.cell].x + link.offset - shift, ++links;
        }
      }
    }
    put();
  }

  void finish() {
    double left = std::numeric_limits<double>::max(), right = std::numeric_limits<double>::lowest();
    for (const Cell& cell : cells_) {
      left = std::min(left, cell.x - cell.width / 2);
      right = std::max(right, cell.x + cell.width / 2);
    }
    layered_.width = cells_.empty() ? 0 : right - left;
    for (Cell& cell : cells_) cell.x -= left;
    for (std::size_t i = 0; i < layered_.boxes.size(); ++i) layered_.boxes[i].x = cells_[i].x;
    for (auto& edge : layered_.edges) {
      if (takes_lane(edge)) continue;
      if (is_port(edge.from)) pass(edge, edge.from);
      const std::uint32_t between = row_of(edge.to) - row_of(edge.from) - 1;
      for (std::uint32_t i = 0; i < between; ++i) pass(edge, bends_[edge.source][i]);
      if (is_port(edge.to)) pass(edge, edge.to);
    }
  }
  void pass(LayeredBoxes::Edge& edge, std::uint32_t cell) const {
    const double x = cells_[cell].x;
    const bool goes_on = !edge.way.empty() && std::abs(edge.way.back().x - x) < 1e-6;
    goes_on ? void(++edge.way.back().rows) : edge.way.push_back({x, 1});
  }

  // Each source has one lane, along all rows that its edges pass. Lanes that are not beside each other share an x.
  void add_lanes() {
    struct Lane {
      std::uint32_t first, last, source;
    };
    std::vector<Lane> lanes;
    std::vector<std::uint32_t> lane_of(layered_.sources, std::numeric_limits<std::uint32_t>::max());
    for (const auto& edge : layered_.edges) {
      if (!takes_lane(edge)) continue;
      const auto [first, last] = std::minmax({row_of(edge.from), row_of(edge.to)});  // a list: values, no references
      std::uint32_t& lane = lane_of[edge.source];
      if (lane >= lanes.size())
        lane = static_cast<std::uint32_t>(lanes.size()), lanes.push_back({first, last, edge.source});
      lanes[lane] = {std::min(lanes[lane].first, first), std::max(lanes[lane].last, last), edge.source};
    }
    std::stable_sort(lanes.begin(), lanes.end(), [](const Lane& a, const Lane& b) { return a.first < b.first; });
    std::vector<double> x_of(layered_.sources);
    std::priority_queue<std::pair<std::uint32_t, double>, std::vector<std::pair<std::uint32_t, double>>, std::greater<>>
        taken;  // until which row, at which x
    for (const Lane& lane : lanes) {
      double x = layered_.width + (taken.empty() ? kGap : kLaneStep);
      if (!taken.empty() && taken.top().first < lane.first) {
        x = taken.top().second;
        taken.pop();
      }
      layered_.width = std::max(layered_.width, x);
      taken.emplace(lane.last, x_of[lane.source] = x);
    }
    for (auto& edge : layered_.edges) {
      if (!takes_lane(edge)) continue;
      if (is_port(edge.from)) pass(edge, edge.from);
      const auto rows = static_cast<std::int32_t>(row_of(edge.to)) - static_cast<std::int32_t>(row_of(edge.from)) - 1;
      edge.way.push_back({x_of[edge.source], rows});
      if (is_port(edge.to)) pass(edge, edge.to);
    }
  }

  LayeredBoxes& layered_;
  std::vector<Row> bends_;   // by source, row by row below it
  std::vector<Cell> cells_;  // the boxes first
  std::vector<Row> rows_;
  std::vector<double> key_;           // by cell
  std::vector<std::uint32_t> index_;  // by cell: its place in its row
};

}  // namespace

void lay_out(LayeredBoxes& boxes) { LayeredMaker(boxes).make(); }

}  // namespace fx
