// The outline of a graph: its nodes as a tree of modules, for pictures and pages that open and close.
//
//   fx::Outline outline(graph);
//   outline.groups()[outline.group_of(node)].label;     // "layer1.0"
//
// A node belongs to the module it came from: the one that holds a call_module or get_attr, or meta `nn_module_stack`.
// Where that is not known (FX text does not say it), to the innermost module that holds both the nearest known node
// before it and the one after it. Inputs and the output belong to the whole. A module with one node alone is left out,
// and one that holds more than `max_members` nodes and modules directly is cut into stages, at the places where the
// fewest values pass: so every group is small enough to draw, with or without modules.
//
// Complexity: O((nodes + uses) · depth of modules). The result is a snapshot. Thread-safety: const functions may run on
// several threads at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

class Outline {
 public:
  static constexpr std::size_t kMaxMembers = 120;

  struct Group {
    std::string label;    ///< a module's path, or the first and last node of a stage
    std::int32_t parent;  ///< always before it; -1 for the whole
    bool is_stage = false;
  };

  explicit Outline(const Graph& graph, std::size_t max_members = kMaxMembers);

  /// The whole first, parents before children.
  const std::vector<Group>& groups() const { return groups_; }
  std::uint32_t group_of(const Node& node) const { return group_of_[node]; }

 private:
  std::vector<Group> groups_;
  NodeMap<std::uint32_t> group_of_;
};

}  // namespace fx
