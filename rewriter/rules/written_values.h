// What a program writes to, and so what of its attributes is no constant. Rules that compute with weights ask here.
#pragma once

#include <string>
#include <unordered_set>

#include <fxgraph/module/graph_module.h>

namespace fx::rules {

class WrittenValues {
 public:
  /// Looks once at the whole graph: O(nodes and edges). Writes through views count, and those of called modules.
  explicit WrittenValues(const GraphModule& module);

  bool contains(const Node& node) const { return nodes_.count(&node) > 0; }
  /// True when some get_attr of this path is written to.
  bool contains_attribute(const std::string& path) const { return attributes_.count(path) > 0; }

 private:
  std::unordered_set<const Node*> nodes_;       // membership only
  std::unordered_set<std::string> attributes_;  // membership only
};

}  // namespace fx::rules
