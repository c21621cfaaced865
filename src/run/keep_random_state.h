// The random numbers of the process, left as they were by what runs programs for its own ends.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace fx::internal {

/// Puts the generator of the process back to what it was: nobody is to see that an operator drew random numbers for its
/// shape. What other threads draw meanwhile is drawn again, so it is kept to operators that may draw.
class KeepRandomState {
 public:
  KeepRandomState();
  KeepRandomState(const KeepRandomState&) = delete;
  KeepRandomState& operator=(const KeepRandomState&) = delete;
  ~KeepRandomState();

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace fx::internal
