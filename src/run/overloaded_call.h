// A call whose overload the values decide, while running.
#pragma once

#include <ATen/core/stack.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/run/operators.h>

namespace fx::internal {

/// Takes the arguments from the stack, positional ones first, then those of `keywords`, and leaves one result (several
/// as a tuple). What was chosen for a combination of kinds is remembered. May run on several threads.
class OverloadedCall {
 public:
  OverloadedCall(std::string name, OverloadSets sets, std::size_t num_args, std::vector<Symbol> keywords);
  void operator()(torch::jit::Stack& stack) const;

 private:
  struct State;
  const TorchOperator* choose(std::uint64_t kinds, const CallValues& call) const;
  std::shared_ptr<State> state_;
};

}  // namespace fx::internal
