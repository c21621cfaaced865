// InMode: one call of a module's forward in one of its modes, with a graph of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/trace/placeholder_inputs.h>
#include <fxgraph/trace/same_program.h>
#include <fxgraph/trace/second_call.h>
#include <fxgraph/trace/trace_log.h>

namespace fx::internal {

/// Runs the program once in a mode; the n-th tensor among its inputs is replaced by `(*stand_ins)[n]`, unless that is
/// null. Puts nothing back before.
using RunInMode =
    std::function<void(Session& session, Graph& graph, const std::vector<at::Tensor>* stand_ins, bool training)>;

class InMode {
 public:
  InMode(const SecondCallPlan& base, const RunInMode& run, bool training);

  /// Calls the program, twice where `second_call` says so: what it keeps from call to call is an error. Puts the state
  /// back before and after. False when it fails, for the reason error().
  bool run(bool second_call);
  /// Calls it once more on other inputs, in that mode, in a session of its own. Puts the state back before.
  void run_in(Session& session, Graph& graph, const std::vector<at::Tensor>& stand_ins) const;
  const std::string& error() const { return error_; }

  const Graph& graph() const { return call_->graph; }
  const Session& session() const { return *call_->session; }
  const TraceLog& log() const { return log_; }
  /// What the program does with its buffers.
  const std::vector<BufferUpdate>& updates() const { return updates_; }

 private:
  bool call_once(bool second_call);

  const RunInMode run_;
  const bool training_;
  SecondCallPlan plan_;
  std::optional<SeparateCall> call_;
  TraceLog log_;
  std::vector<BufferUpdate> updates_;
  std::string error_;
};

}  // namespace fx::internal
