// ModeSwitch: what a module's forward does otherwise in the other mode, train() or eval().
//
// The program is traced once more in the other mode, as a whole. Dropout whose flag follows the mode becomes a call of
// a dropout module, which does; leaf modules that were raised do, too. Where anything else differs, and where modules
// have another mode than the root, the graph holds for its mode only, and the GraphModule refuses to be switched.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/same_program.h>
#include <fxgraph/trace/second_call.h>
#include <fxgraph/trace/size_groups.h>
#include <fxgraph/trace/trace_log.h>

namespace fx::internal {

/// Runs the program once in a mode; the n-th tensor among its inputs is replaced by `(*stand_ins)[n]`, unless that is
/// null. Puts nothing back before.
using RunInMode =
    std::function<void(Session& session, Graph& graph, const std::vector<at::Tensor>* stand_ins, bool training)>;

/// One call of a module's forward in one of its modes, with a graph of its own.
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

class ModeSwitch {
 public:
  using Modules = std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>;

  struct Plan {
    const SecondCallPlan& call;
    torch::nn::Module& root;
    RunInMode run;
    const std::vector<BufferUpdate>& updates;  ///< what it does with its buffers in the mode of the trace
    bool second_call;                          ///< as TraceOptions has it
  };
  /// Traces the program in the other mode, and puts the state back.
  explicit ModeSwitch(const Plan& plan);

  /// After leaf modules have been raised in `graph`: makes calls of dropout modules, which `modules` gets. Returns why
  /// the graph does not hold in the other mode; empty when it does.
  std::string apply(Graph& graph, Session& session, const torch::nn::Module& root, Modules& modules) const;
  /// The same for other sizes, those that `groups` may have, where the program asks for sizes in the other mode.
  /// `program` is what was sampled in the mode of the trace, `agrees` says whether the numbers of a run are those of
  /// the graph. Cost: a run in either mode.
  std::string difference_at_sizes(const ProbedProgram& program, const SizeGroups& groups,
                                  const std::function<bool(const Probe&)>& agrees) const;

 private:
  struct Flag {
    std::uint32_t node;
    std::size_t argument;
    Symbol target;
  };

  void find_other_modes(const Plan& plan);
  void compare(const Plan& plan);
  void find_frozen(const Graph& graph, const SameProgram& comparison);

  std::string here() const;

  bool training_;
  std::unique_ptr<InMode> other_;                  // the call that was compared
  std::vector<std::optional<std::uint32_t>> ids_;  // of the nodes of the trace that are the calls in its log
  std::string other_path_;                         // of a module that has another mode than the root
  std::string difference_;                         // what the program does there, if nothing follows
  std::vector<Flag> flags_;                        // that are others in the other mode
  std::vector<Flag> frozen_;                       // that stay as they are in the other mode
  std::vector<std::pair<std::uint32_t, std::string>> writes_;  // node, in words
  std::vector<std::string> added_;
  bool updates_others_ = false;  // buffers, or by other values
};

}  // namespace fx::internal
