// ProcessEnds: what would end the process while a program is tried on other sizes ends the trial.
//
// A program may rely on its sizes: `assert(x.size(2) % 32 == 0)`, `12 / (n - 2)`. Where it is tried on others a failed
// assertion, abort() or a division of whole numbers by zero are answers, as exceptions are. The signal is caught in the
// thread that runs the trial, and control goes back to where the program was called: what the program had built by then
// is never destroyed. exit() and writes to memory that is not there end the process all the same.
//
// Thread-safety: the handlers are the process's and stand while any thread tries something; signals of other threads go
// to the handlers that were there before.
#pragma once

#include <ATen/ThreadLocalState.h>

#include <csetjmp>
#include <optional>

namespace fx::internal {

/// While it lives, such an end is one of the trial, in this thread.
class ProcessEnds {
 public:
  ProcessEnds();
  ~ProcessEnds();
  ProcessEnds(const ProcessEnds&) = delete;
  ProcessEnds& operator=(const ProcessEnds&) = delete;

 private:
  bool was_on_;
};

/// Where a call of the program is to return to:
///
///   WatchedCall watched;
///   if (watched.is_on() && sigsetjmp(watched.place(), 1) != 0) watched.end();
class WatchedCall {
 public:
  WatchedCall();
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  bool is_on() const { return before_.has_value(); }
  sigjmp_buf& place() { return place_; }
  /// Puts LibTorch's modes back, and throws std::runtime_error that says what the program has done.
  [[noreturn]] void end();

 private:
  std::optional<at::ThreadLocalState> before_;
  sigjmp_buf* outer_;
  sigjmp_buf place_;
};

}  // namespace fx::internal
