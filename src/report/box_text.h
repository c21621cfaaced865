// What stands in a node's box in a picture, and how large the box is for it.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/report/outline.h>

namespace fx {

/// Two lines, the second small and maybe empty, in letters of one width.
struct BoxText {
  std::string name, below;

  double width() const;
  double height() const { return below.empty() ? 26 : 38; }
};

/// The node's name; what it calls, and the sizes of its first tensor if they are known. Long texts lose their middle.
BoxText box_text(const Node& node, const Shapes* shapes = nullptr);

/// The label of a group inside its parent: `0` of `layer1.0`, as the picture shows it.
std::string short_label(const std::vector<Outline::Group>& groups, std::uint32_t group);
/// Room for that label on a frame, and for what a closed group says.
double title_width(const std::string& label);

}  // namespace fx
