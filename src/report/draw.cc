#include <fxgraph/report/draw.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/report/box_text.h>
#include <fxgraph/report/layout.h>
#include <fxgraph/text/print.h>

namespace fx {

namespace {

constexpr std::string_view kStyle =
    "<style>text{font:12px 'DejaVu Sans "
    "Mono',monospace;text-anchor:middle;fill:#1c2733}.t{fill:#64748b;font-size:10.5px}"
    ".node rect{stroke:#a8b2bf;rx:6px}.placeholder rect{fill:#dbeafe}.get_attr rect{fill:#ede9fe}"
    ".call_function rect,.call_method rect{fill:#fff}.call_module rect{fill:#dcfce7}.output rect{fill:#ffedd5}"
    ".effect rect{stroke:#dc2626}.dead rect{stroke-dasharray:4 3;fill:#f6f6f6}"
    ".dead text{fill:#94a3b8;text-decoration:line-through}.marked rect{stroke:#dc2626;stroke-width:3}"
    ".frame rect{fill:#475569;fill-opacity:.05;stroke:#d9dde3;rx:9px}"
    ".frame text{text-anchor:start;font-weight:600;fill:#64748b}.edge{fill:none;stroke:#a8b2bf;stroke-width:1.2}"
    ".arrow{marker-end:url(#arrow)}</style>\n"
    "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
    "markerUnits=\"userSpaceOnUse\" "
    "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#a8b2bf\"/></marker></defs>\n";

std::string number(double value) {
  std::array<char, 32> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.1f", value);
  return buffer.data();
}
std::string number(Point at) { return number(at.x) + " " + number(at.y); }

/// Straight where it goes straight down or up, else a curve that begins and ends upright.
std::string path_of(const std::vector<Point>& points) {
  std::string path = "M" + number(points[0]);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point &a = points[i - 1], &b = points[i];
    if (std::abs(a.x - b.x) < 0.5) {
      path += "L" + number(b);
      continue;
    }
    // On one height the edge turns back: below its box, or above that which it goes to.
    const bool is_below = i + 1 < points.size() && points[i + 1].y < b.y;
    const double middle = a.y == b.y ? a.y + (is_below ? kRowGap : -kRowGap) / 2 : (a.y + b.y) / 2;
    path += "C" + number({a.x, middle}) + " " + number({b.x, middle}) + " " + number(b);
  }
  return path;
}

std::string rectangle(Point at, double width, double height) {
  return "<rect x=\"" + number(at.x) + "\" y=\"" + number(at.y) + "\" width=\"" + number(width) + "\" height=\"" +
         number(height) + "\"/>";
}
std::string text_at(Point at, const std::string& text, std::string_view attributes = "") {
  return "<text" + std::string(attributes) + " x=\"" + number(at.x) + "\" y=\"" + number(at.y) + "\">" +
         escape_xml(text) + "</text>";
}

class Drawing {
 public:
  Drawing(const Graph& graph, const DrawOptions& options)
      : options_(options),
        outline_(graph, std::numeric_limits<std::size_t>::max()),
        layouts_(lay_out(graph, outline_,
                         {.node_width = [&](const Node& node) { return box_text(node, options.shapes).width(); },
                          .group_width = [&](std::uint32_t group) { return group ? title_width(label(group)) : 0; }})),
        stacks_(layouts_.size()),
        origins_(layouts_.size()) {}

  std::string svg() {
    for (std::uint32_t group = static_cast<std::uint32_t>(layouts_.size()); group-- > 0;) stack_rows(group);
    std::string frames, edges, boxes;
    for (std::uint32_t group = 0; group < layouts_.size(); ++group) draw_group(group, frames, edges, boxes);
    const std::string width = number(layouts_[0].width), height = number(stacks_[0].height);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" viewBox=\"0 0 " + width + " " + height + "\">\n" + std::string(kStyle) + frames + edges + boxes +
           "</svg>\n";
  }

 private:
  std::string label(std::uint32_t group) const { return short_label(outline_.groups(), group); }

  void stack_rows(std::uint32_t group) {
    std::vector<double> heights;
    for (const GroupLayout::Box& box : layouts_[group].boxes)
      heights.push_back(box.node ? box_text(*box.node, options_.shapes).height() : stacks_[box.group].height);
    stacks_[group] = stack(layouts_[group], group ? kFrameHead : kFramePadding, std::move(heights));
  }

  // Parents come before children: their frames are behind, and their boxes say where the children are.
  void draw_group(std::uint32_t group, std::string& frames, std::string& edges, std::string& boxes) {
    const GroupLayout& layout = layouts_[group];
    const StackedGroup& stacked = stacks_[group];
    const Point origin = origins_[group];
    if (group != 0) {
      frames += "<g class=\"frame\"><title>" + escape_xml(outline_.groups()[group].label) + "</title>" +
                rectangle(origin, layout.width, stacked.height) +
                text_at({origin.x + 12, origin.y + 17}, label(group)) + "</g>\n";
    }
    for (const GroupLayout::Edge& edge : layout.edges) {
      std::vector<Point> points = stacked.points(layout, edge);
      for (Point& point : points) point = {point.x + origin.x, point.y + origin.y};
      const bool ends = edge.to != GroupLayout::kPort && layout.boxes[static_cast<std::size_t>(edge.to)].node;
      edges += "<path class=\"edge" + std::string(ends ? " arrow" : "") + "\" d=\"" + path_of(points) + "\"/>\n";
    }
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
      const GroupLayout::Box& box = layout.boxes[i];
      const Point at{box.x + origin.x, stacked.box_top(layout, i) + origin.y};
      box.node ? void(boxes += drawn_box(*box.node, at)) : void(origins_[box.group] = at);
    }
  }

  std::string classes(const Node& node) const {
    std::string text = "node " + std::string(to_string(node.op()));
    if (effects_of(node).impure()) text += " effect";
    if (options_.dead && options_.dead->is_dead(node)) text += " dead";
    if (options_.marked == &node) text += " marked";
    return text;
  }

  std::string drawn_box(const Node& node, Point at) const {
    const BoxText text = box_text(node, options_.shapes);
    const double middle = at.x + text.width() / 2;
    std::string out = "<g class=\"" + classes(node) + "\" id=\"n" + std::to_string(node.id()) + "\"><title>" +
                      escape_xml(format_node(node)) + "</title>" + rectangle(at, text.width(), text.height()) +
                      text_at({middle, at.y + (text.below.empty() ? 17 : 16)}, text.name);
    if (!text.below.empty()) out += text_at({middle, at.y + 30}, text.below, " class=\"t\"");
    return out + "</g>\n";
  }

  const DrawOptions& options_;
  const Outline outline_;  // no stages: all of them would be open
  const std::vector<GroupLayout> layouts_;
  std::vector<StackedGroup> stacks_;  // by group, as the others
  std::vector<Point> origins_;
};

/// How many bytes the first letter has in UTF-8 (RFC 3629); none where the text does not begin with one that XML knows.
std::size_t first_letter(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  if (byte(0) < 0x80) return 1;
  constexpr std::array<std::uint32_t, 3> kSmallest = {0x80, 0x800, 0x10000};  // that need so many bytes
  const std::size_t further = byte(0) >= 0xF0 ? 3 : byte(0) >= 0xE0 ? 2 : 1;
  if (byte(0) < 0xC0 || byte(0) > 0xF7 || text.size() <= further) return 0;
  std::uint32_t letter = byte(0) & (0x3Fu >> further);
  for (std::size_t i = 1; i <= further; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    letter = letter << 6 | (byte(i) & 0x3F);
  }
  const bool is_surrogate = letter >= 0xD800 && letter < 0xE000, is_none = letter == 0xFFFE || letter == 0xFFFF;
  return letter < kSmallest[further - 1] || letter > 0x10FFFF || is_surrogate || is_none ? 0 : further + 1;
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = first_letter(text);
    switch (const char c = text[0]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        // Control characters, and what is no UTF-8, have no place in XML, escaped or not.
        if (bytes == 0) {
          out += "\uFFFD";
        } else if (bytes == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
          out += '?';
        } else {
          out += text.substr(0, bytes);
        }
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

std::string draw_svg(const Graph& graph, const DrawOptions& options) { return Drawing(graph, options).svg(); }

}  // namespace fx
