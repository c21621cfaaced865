// Which values a statement uses last: what generated code lets go of there.
//
// Cost: linear in the graph. Thread-safety: const once made.
#pragma once

#include <vector>

#include <fxgraph/ir/node_map.h>

namespace fx {

class Releases {
 public:
  explicit Releases(const Graph& graph);
  /// The inputs of `node` that nothing after it uses, in the order of its arguments, and `node` itself when nothing
  /// uses it.
  const std::vector<const Node*>& after(const Node& node) const { return released_[node]; }

 private:
  NodeMap<std::vector<const Node*>> released_;
};

}  // namespace fx
