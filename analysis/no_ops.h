// Calls that return one of their arguments as it is: x + 0, x * 1, dropout at inference, relu of a relu.
//
// Only what holds for every input is reported. `x + 0` keeps the value but not the sign of -0.0, and promotes types: it
// counts as a no-op only when shapes are given and say that type and sizes stay. The result may still be a copy, which
// matters where one of the two is written in place: ask Effects before replacing it. O(nodes).
#pragma once

#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

class Effects;

/// A call that could be replaced by one of its arguments.
struct NoOp {
  Node* node;          ///< the call
  Node* same_as;       ///< the argument that it returns
  std::string reason;  ///< "adds 0"
};

/// The argument that the call returns whatever shapes are and whoever writes between; null when there is none.
Node* no_op_argument(const Node& node);

/// In graph order. Without `shapes`, only the no-ops that need none. `effects` are made when they are not given.
std::vector<NoOp> find_no_ops(const Graph& graph, const Shapes* shapes = nullptr, const Effects* effects = nullptr);

}  // namespace fx
