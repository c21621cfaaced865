// Where LibTorch hands operators to the tracer.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <memory>
#include <string>

#include <fxgraph/trace/dispatch_keys.h>
#include <fxgraph/trace/program_modes.h>

namespace fx::internal {

class Session;

/// Registers the tracer with LibTorch's dispatcher, once per process. Costs nothing to code that does not trace. Throws
/// Error(trace) when another copy of fxgraph in this process has done so.
void install_dispatch();

/// How many operators this thread has handed to traces so far: a measure of work that no machine's speed changes.
std::uint64_t traced_operators();

/// While it lives, every operator that this thread runs is recorded by `session`, also those without proxies among
/// their arguments, and scripted functions run as they are written. Scopes nest: a trace inside a trace records to its
/// own session.
class RecordingScope {
 public:
  explicit RecordingScope(Session& session);
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  /// Tells the trace that this thread is in, if any, that a question is about to be refused with this message.
  static void refused(const std::string& message);
  /// What was refused so far in the trace that this thread is in; empty: nothing, or there is none.
  static std::string what_was_refused();
  /// Whether that trace has example inputs.
  static bool has_examples();

 private:
  Session* outer_;
  bool outer_optimizes_;  // scripted functions
  WithGradients gradients_;
  c10::impl::IncludeDispatchKeyGuard mode_;
};

}  // namespace fx::internal
