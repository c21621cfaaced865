// The random generator of the process, kept while something draws from it that nobody is to see.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace fx::internal {

/// Puts the generator's state back at its end. What other threads draw meanwhile is drawn again, so it is kept to where
/// something draws.
class KeepRandomState {
 public:
  KeepRandomState() : generator_(at::detail::getDefaultCPUGenerator()) {
    std::lock_guard<std::mutex> lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~KeepRandomState() {
    std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state_);
  }
  KeepRandomState(const KeepRandomState&) = delete;
  KeepRandomState& operator=(const KeepRandomState&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace fx::internal
