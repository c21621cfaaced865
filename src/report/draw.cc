#include <fxgraph/report/draw.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <fxgraph/ops/effects.h>
#include <fxgraph/report/layout.h>
#include <fxgraph/text/print.h>

namespace fx {

namespace {

constexpr double kLetter = 6.6;  // the width of a letter at 11 pixels, monospaced

constexpr std::string_view kStyle =
    "<style>text{font:11px monospace;text-anchor:middle}.t{fill:#555;font-size:10px}"
    ".node rect{stroke:#666;rx:5}.placeholder rect{fill:#cfe8ff}.get_attr rect{fill:#e8e4f8}.call_function "
    "rect{fill:#fff}"
    ".call_method rect{fill:#f4f4e4}.call_module rect{fill:#e2f3df}.output rect{fill:#ffe3c9}.effect rect{stroke:#c33}"
    ".dead rect{stroke-dasharray:4 3;fill:#f6f6f6}.dead text{fill:#aaa;text-decoration:line-through}"
    ".marked rect{stroke:#d60;stroke-width:3}.edge{fill:none;stroke:#999}</style>\n";

std::string number(double value) {
  std::array<char, 32> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.1f", value);
  return buffer.data();
}

/// The end of a long target, which is what tells it from others.
std::string shortened(std::string text) {
  constexpr std::size_t kMax = 34;
  return text.size() <= kMax ? text : "…" + text.substr(text.size() - kMax + 1);
}

std::string subtitle(const Node& node, const Shapes* shapes) {
  std::string text = node.is(Op::output) || node.is(Op::placeholder) ? std::string() : shortened(node.target().str());
  const TensorInfo* tensor = shapes ? (*shapes)[node].tensor() : nullptr;
  if (tensor) text += (text.empty() ? "" : " ") + to_string(*tensor);
  return text;
}

std::string path_of(const LayoutEdge& edge) {
  std::string path = "M" + number(edge.points[0].x) + " " + number(edge.points[0].y);
  for (std::size_t i = 1; i < edge.points.size(); ++i) {
    const Point &a = edge.points[i - 1], &b = edge.points[i];
    const std::string middle = number((a.y + b.y) / 2);
    path += "C" + number(a.x) + " " + middle + " " + number(b.x) + " " + middle + " " + number(b.x) + " " + number(b.y);
  }
  return path;
}

std::string classes(const Node& node, const DrawOptions& options) {
  std::string text = "node " + std::string(to_string(node.op()));
  if (effects_of(node).impure()) text += " effect";
  if (options.dead && options.dead->is_dead(node)) text += " dead";
  if (options.marked == &node) text += " marked";
  return text;
}

void draw_box(std::string& out, const LayoutBox& box, const DrawOptions& options) {
  const Node& node = *box.node;
  const std::string below = subtitle(node, options.shapes);
  out += "<g class=\"" + classes(node, options) + "\" id=\"n" + std::to_string(node.id()) + "\"><title>" +
         escape_xml(format_node(node)) + "</title><rect x=\"" + number(box.centre.x - box.width / 2) + "\" y=\"" +
         number(box.centre.y - box.height / 2) + "\" width=\"" + number(box.width) + "\" height=\"" +
         number(box.height) + "\"/><text x=\"" + number(box.centre.x) + "\" y=\"" +
         number(box.centre.y + (below.empty() ? 4 : -3)) + "\">" + escape_xml(shortened(node.name())) + "</text>";
  if (!below.empty()) {
    out += "<text class=\"t\" x=\"" + number(box.centre.x) + "\" y=\"" + number(box.centre.y + 11) + "\">" +
           escape_xml(below) + "</text>";
  }
  out += "</g>\n";
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        // Control characters have no place in XML, escaped or not.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

std::string draw_svg(const Graph& graph, const DrawOptions& options) {
  LayoutOptions layout_options;
  layout_options.box_width = [&](const Node& node) {
    const std::size_t letters = std::max(shortened(node.name()).size(), subtitle(node, options.shapes).size());
    return std::max(60.0, static_cast<double>(letters) * kLetter + 14);
  };
  const GraphLayout layout = lay_out(graph, layout_options);
  const std::string width = number(layout.width), height = number(layout.height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
                    "\" viewBox=\"0 0 " + width + " " + height + "\">\n";
  out += kStyle;
  for (const LayoutEdge& edge : layout.edges) out += "<path class=\"edge\" d=\"" + path_of(edge) + "\"/>\n";
  for (const LayoutBox& box : layout.boxes) draw_box(out, box, options);
  return out + "</svg>\n";
}

}  // namespace fx
