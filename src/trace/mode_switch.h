// ModeSwitch: what a module's forward does otherwise in the other mode, train() or eval().
//
// The program is traced once more in the other mode, as a whole; and in its own, where modules below the root have
// another mode than it. Dropout whose flag follows the mode becomes a call of a dropout module, which does; leaf
// modules that were raised do, too. Where anything else differs the graph holds for its mode only, and the GraphModule
// refuses to be switched. Where a norm in training finds one value only, both modes are compared on larger inputs.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/in_mode.h>
#include <fxgraph/trace/same_program.h>
#include <fxgraph/trace/second_call.h>
#include <fxgraph/trace/size_groups.h>

namespace fx::internal {

class ModeSwitch {
 public:
  using Modules = std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>;

  struct Plan {
    const SecondCallPlan& call;
    torch::nn::Module& root;
    RunInMode run;
    const std::vector<BoundTensor>& inputs;
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
  bool compare_at(const Plan& plan, const std::vector<at::Tensor>* stand_ins);
  void compare(const Graph& graph, const Session& session, const InMode& call, bool training, const Plan& plan);
  static void find_unused_flags(const Graph& graph, const Graph& other, const SameProgram& comparison,
                                std::vector<Flag>& flags);
  void find_frozen(const Graph& graph);
  static bool has(const std::vector<Flag>& flags, std::uint32_t node);

  std::string here() const;

  bool training_;
  std::unique_ptr<InMode> other_;                  // the call that was compared
  std::vector<std::optional<std::uint32_t>> ids_;  // of the nodes of the trace that are the calls in its log
  bool is_mixed_ = false;                          // modules below the root have another mode
  std::string frozen_path_;
  std::string difference_;                                     // what the program does there, if nothing follows
  std::vector<Flag> flags_;                                    // that are others in the other mode
  std::vector<Flag> own_flags_;                                // that are others where all modules are in its own
  std::vector<Flag> frozen_;                                   // that stay as they are in the other mode
  std::vector<std::pair<std::uint32_t, std::string>> writes_;  // node, in words
  std::vector<std::string> added_;
  bool updates_others_ = false;  // buffers, or by other values
};

}  // namespace fx::internal
