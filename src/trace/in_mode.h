// InMode: one call of a module's forward in one of its modes, at the sizes of the examples or at others, with a graph
// of its own.
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

/// Runs the program once, in the mode that is given, else in that which it has; the n-th tensor among its inputs is
/// replaced by `(*stand_ins)[n]`, unless that is null. Puts nothing back before.
using RunInMode = std::function<void(Session& session, Graph& graph, const std::vector<at::Tensor>* stand_ins,
                                     std::optional<bool> training)>;

/// Whether this is what norms say of one value per channel, which is too little for statistics.
bool is_about_statistics(std::string_view error);

class InMode {
 public:
  /// `stand_ins` may be null, for the examples.
  InMode(const SecondCallPlan& base, const RunInMode& run, std::optional<bool> training,
         const std::vector<at::Tensor>* stand_ins);

  /// Calls the program, twice where `second_call` says so: what it keeps from call to call is an error. Puts the state
  /// back before and after. False when it fails, for the reason error().
  bool run(bool second_call);
  /// Calls it once more on other inputs, in that mode, in a session of its own. Puts the state back before.
  void run_in(Session& session, Graph& graph, const std::vector<at::Tensor>& stand_ins) const;
  const std::string& error() const { return error_; }
  bool has_too_few_values() const { return is_about_statistics(error_); }

  const Graph& graph() const { return call_->graph; }
  const Session& session() const { return *call_->session; }
  const TraceLog& log() const { return log_; }
  /// What the program does with its buffers.
  const std::vector<BufferUpdate>& updates() const { return updates_; }

 private:
  bool call_once(bool second_call);

  const RunInMode run_;
  const std::optional<bool> training_;
  SecondCallPlan plan_;
  std::optional<SeparateCall> call_;
  TraceLog log_;
  std::vector<BufferUpdate> updates_;
  std::string error_;
};

/// Inputs like these with more in them, for what fails on too little: a larger batch first. The most likely come first.
std::vector<std::vector<at::Tensor>> larger_inputs(const std::vector<BoundTensor>& inputs);

}  // namespace fx::internal
