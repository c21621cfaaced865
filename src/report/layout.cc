#include <fxgraph/report/layout.h>

#include <algorithm>
#include <compare>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <fxgraph/ir/node_map.h>

namespace fx {

namespace {

class LayoutMaker {
 public:
  LayoutMaker(const Graph& graph, const Outline& outline, const LayoutOptions& options)
      : outline_(outline),
        options_(options),
        place_(graph, 0),
        items_(outline.groups().size()),
        ports_(items_.size()),
        layouts_(items_.size()) {
    for (const Node& node : graph.nodes()) nodes_.push_back(&node), place_[node] = static_cast<Item>(nodes_.size() - 1);
    index_.resize(nodes_.size() + items_.size());
  }

  std::vector<GroupLayout> make() {
    collect_items();
    collect_segments();
    // Parents come before children: from the last, each is laid out when those inside it are.
    std::size_t end = segments_.size();
    for (std::uint32_t group = static_cast<std::uint32_t>(items_.size()); group-- > 0;) {
      std::size_t begin = end;
      while (begin > 0 && segments_[begin - 1].group == group) --begin;
      if (!items_[group].empty()) lay_out_group(group, segments_.data() + begin, segments_.data() + end);
      end = begin;
    }
    return std::move(layouts_);
  }

 private:
  using Item = std::uint32_t;  // a node's place, or the number of nodes and a group
  static constexpr Item kPort = ~Item{0};
  /// What one value does in one group: it goes from a box or the upper side to a box or the lower side.
  struct Segment {
    std::uint32_t group;
    std::uint32_t source;  // its place
    Item from, to;
    auto operator<=>(const Segment&) const = default;
  };
  struct Ports {
    std::vector<std::pair<std::uint32_t, double>> in, out;  // place of the source, offset from the middle; sorted
  };

  Item item(std::uint32_t group) const { return static_cast<Item>(nodes_.size()) + group; }
  std::uint32_t parent(std::uint32_t group) const {
    return static_cast<std::uint32_t>(outline_.groups()[group].parent);
  }

  /// What each group holds and shows, in the order of the first nodes; sort_items() has the last word.
  void collect_items() {
    std::vector<bool> seen(items_.size(), false);
    for (const Node* node : nodes_) {
      if (options_.hidden(*node)) continue;
      std::uint32_t group = outline_.group_of(*node);
      items_[group].push_back(place_[*node]);
      for (; group != 0 && !seen[group]; group = parent(group)) {
        seen[group] = true;
        items_[parent(group)].push_back(item(group));
      }
    }
  }

  void collect_segments() {
    for (const Node* node : nodes_) {
      if (options_.hidden(*node)) continue;
      node->for_each_input([&](Node& input) {
        if (!options_.hidden(input)) connect(input, *node);
      });
    }
    std::sort(segments_.begin(), segments_.end());
    segments_.erase(std::unique(segments_.begin(), segments_.end()), segments_.end());
  }
  void connect(const Node& source, const Node& user) {
    std::uint32_t above = outline_.group_of(source), below = outline_.group_of(user);
    const std::uint32_t place = place_[source];
    Item up = place, down = place_[user];
    while (above != below) {  // the larger of the two holds not both
      if (below > above) {
        segments_.push_back({below, place, kPort, std::exchange(down, item(below))});
        below = parent(below);
      } else {
        segments_.push_back({above, place, std::exchange(up, item(above)), kPort});
        above = parent(above);
      }
    }
    segments_.push_back({above, place, up, down});
  }

  /// So that edges point down: the weights of a group may come long before what it is given. Items that do already keep
  /// their order, and so do those in a circle.
  void sort_items(std::vector<Item>& items, const Segment* begin, const Segment* end) {
    const auto count = static_cast<std::uint32_t>(items.size());
    for (std::uint32_t i = 0; i < count; ++i) index_[items[i]] = i;
    const auto is_within = [&](const Segment& each) { return each.from != kPort && each.to != kPort; };
    const auto goes_up = [&](const Segment& each) { return is_within(each) && index_[each.from] > index_[each.to]; };
    if (std::none_of(begin, end, goes_up)) return;
    std::vector<std::uint32_t> waits(count, 0);
    std::vector<std::vector<std::uint32_t>> below(count);
    for (const Segment* at = begin; at != end; ++at) {
      if (!is_within(*at) || at->from == at->to) continue;
      below[index_[at->from]].push_back(index_[at->to]);
      ++waits[index_[at->to]];
    }
    std::set<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (waits[i] == 0) ready.insert(i);
    }
    std::vector<bool> placed(count, false);
    std::vector<Item> sorted;
    for (std::uint32_t first = 0; sorted.size() < count;) {
      while (ready.empty() && placed[first]) ++first;
      const std::uint32_t next = ready.empty() ? first : *ready.begin();
      ready.erase(next);
      placed[next] = true;
      sorted.push_back(items[next]);
      for (const std::uint32_t other : below[next]) {
        if (--waits[other] == 0 && !placed[other]) ready.insert(other);
      }
    }
    items = std::move(sorted);
  }

  void lay_out_group(std::uint32_t group, const Segment* begin, const Segment* end) {
    sort_items(items_[group], begin, end);
    LayeredBoxes layered;
    std::vector<std::uint32_t> in, out;  // sources
    for (const Segment* at = begin; at != end; ++at) {
      if (at->from == kPort && (in.empty() || in.back() != at->source)) in.push_back(at->source);
      if (at->to == kPort && (out.empty() || out.back() != at->source)) out.push_back(at->source);
    }
    for (std::size_t i = 0; i < in.size(); ++i) layered.boxes.push_back({8, -1});
    for (const Item item : items_[group]) {
      index_[item] = static_cast<std::uint32_t>(layered.boxes.size());
      layered.boxes.push_back({width_of(item)});
    }
    for (std::size_t i = 0; i < out.size(); ++i) layered.boxes.push_back({8, 1});
    std::size_t next_in = 0, next_out = in.size() + items_[group].size();
    for (const Segment* at = begin; at != end; ++at) {
      const bool is_new = at == begin || at->source != (at - 1)->source;
      if (is_new) ++layered.sources;
      if (is_new && at->from == kPort) ++next_in;
      auto& edge = layered.edges.emplace_back();
      edge.source = layered.sources - 1;
      edge.from = at->from == kPort ? static_cast<std::uint32_t>(next_in - 1) : index_[at->from];
      edge.to = at->to == kPort ? static_cast<std::uint32_t>(next_out++) : index_[at->to];
      edge.from_offset = at->from == kPort ? 0 : offset(at->from, &Ports::out, at->source);
      edge.to_offset = at->to == kPort ? 0 : offset(at->to, &Ports::in, at->source);
    }
    fx::lay_out(layered);
    keep(group, layered, in, out, begin);
  }

  double width_of(Item item) const {
    return item < nodes_.size() ? options_.node_width(*nodes_[item]) : layouts_[item - nodes_.size()].width;
  }
  double offset(Item item, std::vector<std::pair<std::uint32_t, double>> Ports::*side, std::uint32_t source) const {
    if (item < nodes_.size()) return 0;
    const auto& ports = ports_[item - nodes_.size()].*side;
    return std::lower_bound(ports.begin(), ports.end(), std::pair(source, std::numeric_limits<double>::lowest()))
        ->second;
  }

  void keep(std::uint32_t group, LayeredBoxes& layered, const std::vector<std::uint32_t>& in,
            const std::vector<std::uint32_t>& out, const Segment* segment) {
    GroupLayout& layout = layouts_[group];
    layout.rows = layered.rows;
    layout.width = std::max(layered.width + 2 * kFramePadding, options_.group_width(group));
    const double shift = (layout.width - layered.width) / 2;
    for (std::size_t i = 0; i < items_[group].size(); ++i) {
      const auto& box = layered.boxes[in.size() + i];
      const Item item = items_[group][i];
      const bool is_node = item < nodes_.size();
      layout.boxes.push_back({is_node ? nodes_[item] : nullptr, is_node ? 0 : item - static_cast<Item>(nodes_.size()),
                              box.row, box.x + shift - box.width / 2, box.width});
    }
    const auto index = [&](std::uint32_t box) {
      return layered.boxes[box].end != 0 ? GroupLayout::kPort : static_cast<std::int32_t>(box - in.size());
    };
    for (auto& edge : layered.edges) {
      for (Run& run : edge.way) run.x += shift;
      layout.edges.push_back({nodes_[(segment++)->source], index(edge.from), index(edge.to), edge.from_offset,
                              edge.to_offset, std::move(edge.way)});
    }
    const auto port = [&](std::uint32_t source, std::size_t box) {
      return std::pair(source, layered.boxes[box].x + shift - layout.width / 2);
    };
    for (std::size_t i = 0; i < in.size(); ++i) ports_[group].in.push_back(port(in[i], i));
    for (std::size_t i = 0; i < out.size(); ++i)
      ports_[group].out.push_back(port(out[i], in.size() + items_[group].size() + i));
  }

  const Outline& outline_;
  const LayoutOptions& options_;
  NodeMap<Item> place_;
  std::vector<const Node*> nodes_;        // by place
  std::vector<std::vector<Item>> items_;  // by group
  std::vector<Ports> ports_;              // by group
  std::vector<GroupLayout> layouts_;      // by group
  std::vector<Segment> segments_;         // by group
  std::vector<std::uint32_t> index_;      // by item: its box in the group around it
};

}  // namespace

std::vector<GroupLayout> lay_out(const Graph& graph, const Outline& outline, const LayoutOptions& options) {
  return LayoutMaker(graph, outline, options).make();
}

StackedGroup stack(const GroupLayout& layout, double head, std::vector<double> heights) {
  StackedGroup stacked;
  stacked.top.resize(layout.rows, 0);
  stacked.bottom.resize(layout.rows, 0);
  for (std::size_t i = 0; i < heights.size(); ++i) {
    double& height = stacked.bottom[layout.boxes[i].row];
    height = std::max(height, heights[i]);
  }
  double y = head;
  for (std::size_t row = 0; row < layout.rows; ++row) {
    const double height = stacked.bottom[row];
    stacked.top[row] = y;
    stacked.bottom[row] = y + height;
    const bool is_between = height > 0 && row + 1 < layout.rows && stacked.bottom[row + 1] > 0;
    y += height + (is_between ? kRowGap : kPortGap);
  }
  // Ports stand on the lower side.
  const bool has_ports = layout.rows && stacked.top.back() == stacked.bottom.back();
  stacked.height = (layout.rows ? stacked.bottom.back() : head) + (has_ports ? 0 : kFramePadding);
  stacked.heights = std::move(heights);
  return stacked;
}

double StackedGroup::box_top(const GroupLayout& layout, std::size_t box) const {
  const std::uint32_t row = layout.boxes[box].row;
  return (top[row] + bottom[row] - heights[box]) / 2;
}

std::vector<Point> StackedGroup::points(const GroupLayout& layout, const GroupLayout::Edge& edge) const {
  std::vector<Point> points;
  const auto add = [&](double x, double y) {
    if (points.empty() || points.back().x != x || points.back().y != y) points.push_back({x, y});
  };
  const auto middle = [&](std::int32_t box) {
    const auto& at = layout.boxes[static_cast<std::size_t>(box)];
    return at.x + at.width / 2;
  };
  std::int32_t row = 0;
  if (edge.from == GroupLayout::kPort) {
    add(edge.way.front().x, 0);
  } else {
    const auto from = static_cast<std::size_t>(edge.from);
    const double x = middle(edge.from) + edge.from_offset;
    add(x, box_top(layout, from) + heights[from]);
    add(x, bottom[layout.boxes[from].row]);
    row = static_cast<std::int32_t>(layout.boxes[from].row) + 1;
  }
  for (const Run& run : edge.way) {
    const std::int32_t next = row + run.rows;
    const auto at = [](std::int32_t index) { return static_cast<std::size_t>(index); };
    add(run.x, run.rows > 0 ? top[at(row)] : bottom[at(row - 1)]);
    add(run.x, run.rows > 0 ? bottom[at(next - 1)] : top[at(next)]);
    row = next;
  }
  if (edge.to == GroupLayout::kPort) {
    add(edge.way.back().x, height);
  } else {
    const double x = middle(edge.to) + edge.to_offset;
    add(x, top[layout.boxes[static_cast<std::size_t>(edge.to)].row]);
    add(x, box_top(layout, static_cast<std::size_t>(edge.to)));
  }
  return points;
}

}  // namespace fx
