// A graph as a picture: one SVG, without scripts, fonts or links of its own.
#pragma once

#include <string>

#include <fxgraph/analysis/dead_code.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// What the picture shows beside the graph.
struct DrawOptions {
  const Shapes* shapes = nullptr;  ///< sizes are written under the targets
  const DeadCode* dead = nullptr;  ///< dead nodes are pale, dashed and struck through
  const Node* marked = nullptr;    ///< drawn with a thick frame: where memory peaks, say
};

/// Boxes with name and target, one colour an opcode (operators with effects stand out by their own), a curve per use,
/// and a tooltip with the node as FX prints it. Each box is a `<g class="node" id="n<id>">`. Where nodes come from
/// modules, each module that holds several is a frame, `<g class="frame">`. Near-linear; see layout.h.
std::string draw_svg(const Graph& graph, const DrawOptions& options = {});

/// Escapes `text` for XML and HTML.
std::string escape_xml(std::string_view text);

}  // namespace fx
