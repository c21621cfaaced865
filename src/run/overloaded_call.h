// A call whose overload the values decide, while running.
#pragma once

#include <ATen/core/stack.h>

#include <memory>

#include <fxgraph/ir/node.h>

namespace fx::internal {

/// Takes the values of the call's all_input_nodes() from the stack, and leaves one result, several as a tuple. What
/// fx::Call says of a combination of kinds is remembered. May run on several threads.
class OverloadedCall {
 public:
  explicit OverloadedCall(const Node& node);
  void operator()(torch::jit::Stack& stack) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fx::internal
