// Which values a statement uses last: what generated code lets go of there.
//
// Cost: linear in the graph. Thread-safety: const once made.
#pragma once

#include <vector>

#include <fxgraph/ir/node_map.h>

namespace fx {

class Releases {
 public:
  /// `of_operators`: who writes a call writes the operator that it is of, with that one's arguments (call_of).
  explicit Releases(const Graph& graph, bool of_operators = false);
  /// The inputs of `node` that nothing after it uses, in the order of the arguments that are written, and `node` itself
  /// when nothing uses it.
  const std::vector<const Node*>& after(const Node& node) const { return released_[node]; }

 private:
  NodeMap<std::vector<const Node*>> released_;
};

}  // namespace fx
