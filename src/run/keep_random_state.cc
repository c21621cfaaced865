#include <fxgraph/run/keep_random_state.h>

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace fx::internal {

KeepRandomState::KeepRandomState() : generator_(at::detail::getDefaultCPUGenerator()) {
  const std::lock_guard lock(generator_.mutex());
  state_ = generator_.get_state();
}

KeepRandomState::~KeepRandomState() {
  const std::lock_guard lock(generator_.mutex());
  generator_.set_state(state_);
}

}  // namespace fx::internal
