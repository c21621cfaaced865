// GradModeOnFailure: what a run that throws leaves of the calls that switch gradients (`set_grad_enabled`): nothing.
// The one that would have switched back is never reached.
#pragma once

#include <ATen/core/grad_mode.h>

#include <exception>

namespace fx::internal {

/// Puts the thread's grad mode back when an exception ends its scope.
class GradModeOnFailure {
 public:
  GradModeOnFailure() = default;
  GradModeOnFailure(const GradModeOnFailure&) = delete;
  GradModeOnFailure& operator=(const GradModeOnFailure&) = delete;
  ~GradModeOnFailure() {
    if (std::uncaught_exceptions() > exceptions_ && at::GradMode::is_enabled() != enabled_)
      at::GradMode::set_enabled(enabled_);
  }

 private:
  int exceptions_ = std::uncaught_exceptions();
  bool enabled_ = at::GradMode::is_enabled();
};

}  // namespace fx::internal
