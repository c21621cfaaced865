// What c10d/reducer.hpp names of a header that Debian's libtorch-dev leaves out: declarations alone, for programs
// without RPC.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>

namespace torch::distributed::autograd {

class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(torch::Tensor&)>;
};
using ContextPtr = std::shared_ptr<DistAutogradContext>;

}  // namespace torch::distributed::autograd
