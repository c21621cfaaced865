// TracedBody: what one call of a leaf module computed when it was traced.
//
// Tracing notes it on call_module nodes (meta "traced_body") whose module has no body of its own (LSTM,
// MultiheadAttention, …), so that the call can be written where a module cannot be called: TorchScript. So does reading
// a scripted file at examples, for those who ask what the call computes: there the module runs as TorchScript. Copies
// of the node share it; text does not carry it.
#pragma once

#include <functional>
#include <memory>

#include <fxgraph/ir/graph.h>

namespace fx {

namespace meta_key {
inline constexpr const char* kTracedBody = "traced_body";  ///< fx::TracedBody
}  // namespace meta_key

struct TracedBody {
  /// One placeholder for each distinct node among the call's arguments, in order; get_attr nodes name tensors by their
  /// paths inside the module.
  std::shared_ptr<const Graph> graph;
  /// The same for any size of the inputs, traced when it is asked for; null when that fails. May be empty.
  std::function<std::shared_ptr<const Graph>()> at_any_size;
  /// The mode in which it was traced, the only one it holds for.
  bool training = false;
};

}  // namespace fx
