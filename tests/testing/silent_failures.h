// SilentFailures: while it lives, LibTorch does not warn, on this thread's behalf or another's, and its errors of this
// thread do not name every function on the stack, which takes four fifths of the time of programs that fail often.
//
// For programs that do on purpose what LibTorch warns of and refuses. Thread-safety: one at a time.
#pragma once

#include <c10/util/Exception.h>
#include <torch/version.h>

#include <string>

#include <fxgraph/shapes/brief_errors.h>

namespace fx::internal {

class SilentFailures {
 private:
#if TORCH_VERSION_MAJOR < 2
  using Guard = c10::Warning::WarningHandlerGuard;
  struct Silence : c10::WarningHandler {
    void process(const c10::SourceLocation&, const std::string&, const bool) override {}
  };
#else
  using Guard = c10::WarningUtils::WarningHandlerGuard;
  struct Silence : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
#endif

  Silence silence_;
  Guard guard_{&silence_};
  BriefErrors brief_;
};

}  // namespace fx::internal
