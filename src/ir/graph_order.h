// The order of nodes in their graph, as a comparison for sort, set and binary searches. O(1) each (see
// Node::is_before).
#pragma once

#include <fxgraph/ir/node.h>

namespace fx {

struct GraphOrder {
  bool operator()(const Node* a, const Node* b) const { return a->is_before(*b); }
};

}  // namespace fx
