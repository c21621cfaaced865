// optimize: applies rules to a program until none changes it any more.
//
//   fx::OptimizeReport report = fx::optimize(*gm);                                        // the group `inference`
//   fx::OptimizeReport report = fx::optimize(*gm, {.rules = {"fusion", "dead-code"}, .inputs = {…shapes…}});
//
// Decompositions run first, once to their own fixed point; then all others in rounds: neighbouring rewrites together to
// a fixed point, passes between them, until a round changes nothing. The graph is linted at the end. An exception
// leaves the program as the last complete step left it.
//
// Rules are for inference: results stay as they promise, gradients may become others or none.
//
// Thread-safety: none for one program; different programs may be optimised at once.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/rewriter/rules/rules.h>

namespace fx {

/// Which rules are applied, and what is known of the program.
struct OptimizeOptions {
  std::vector<std::string> rules{};  ///< rules or groups by name; empty: inference
  /// Shapes and types of the inputs, if they are known: some rules need them. See ShapeProp.
  std::vector<TensorInfo> inputs{};
  /// `cpu`: calls of modules are written out, and at the end the group `lowering` runs once: what this machine computes
  /// fastest is measured and called, with packed weights. The result is for inference on such a machine, in batches of
  /// any size, one call at a time unless `concurrent`; packed kernels make numbers of NaN. Needs `inputs`. Empty:
  /// nothing depends on the machine.
  std::string target{};
  /// With a target: call only what several threads may run at once in one loaded copy of the result. (A GraphModule may
  /// be run by several threads in any case.)
  bool concurrent = false;
  /// With a target: lowering is undone when the whole program then takes so many times as long as before. What a call
  /// costs those around it, threads that wait for each other for instance, shows in the whole alone.
  double max_slowdown = 1.05;
  /// With a target, and inputs that are a batch: the whole is measured in micro-batches, too, where each sample is
  /// computed by itself, and runs so where that is faster (GraphModule::set_micro_batches).
  bool micro_batches = true;
  /// `bfloat16`, with a target: convolutions, linear layers and products of matrices are computed in it where that is
  /// faster, casts included. What is no product, and what the program returns, stays float32.
  std::optional<DType> dtype{};
  /// With a type: nothing is computed in it unless the whole program then takes at most this share of the time that it
  /// takes lowered in float32.
  double max_rounded = 0.98;
  /// Rules that would hold the program to the types and ranks of `inputs` are refused; otherwise that is asserted.
  bool keep_sizes = false;
  std::size_t max_rounds = 8;                             ///< at most; what is left then, OptimizeReport::stop says
  std::function<void(std::string_view rule)> progress{};  ///< told before each rule or group of rewrites
};

/// What became of one rule, over all rounds.
struct RuleOutcome {
  const rules::OptimizeRule* rule = nullptr;  ///< as it is in the list
  std::size_t tried = 0;                      ///< places where its patterns could start; 0 for passes
  std::size_t matched = 0;                    ///< places where they fit
  std::size_t applied = 0;                    ///< rewrites, or what a pass counts as one
  std::vector<Refusal> refused{};             ///< in the end
  std::vector<std::pair<std::string, std::size_t>>
      dropped{};                         ///< what else passes count: {"module", 53} is 53 modules dropped
  std::vector<rules::Choice> choices{};  ///< what was measured, by rules of the group `lowering`
  std::chrono::nanoseconds time{0};      ///< over all rounds
};

/// What optimize() did, rule by rule.
struct OptimizeReport {
  std::vector<RuleOutcome> rules;     ///< in the order of the list
  std::size_t rounds = 0;             ///< until nothing changed, or OptimizeOptions::max_rounds
  std::size_t shapes_worked_out = 0;  ///< nodes; after the first round only those that changed, and what they reach
  /// Why shapes are not known although inputs were given: the program does not run on zeros of those shapes. Rules that
  /// need them refuse.
  std::string without_shapes{};
  std::vector<rules::HeldInput> held{};  ///< what the program takes no longer, since rules went by it
  /// What made a change of the whole program be undone: seconds of a forward, in turn.
  struct Undone {
    double kept = 0;    ///< of what was kept
    double undone = 0;  ///< with the change
  };
  std::optional<Undone> lowering_undone{};       ///< set where it was: see OptimizeOptions::max_slowdown
  std::optional<Undone> rounding_undone{};       ///< the same of bfloat16, beside lowering alone: see max_rounded
  std::optional<rules::Choice> micro_batches{};  ///< what was measured of the whole program, whole and cut
  std::string without_micro_batches{};           ///< why a batch is run whole, where that was not measured
  RewriteStop stop = RewriteStop::fixed_point;   ///< `max_rewrites` when the rounds were used up

  /// The sum over all rules.
  std::size_t applied() const;
  /// True when batches are cut into micro-batches now.
  bool is_cut() const { return micro_batches && micro_batches->fastest > 0; }
};

/// Changes `module`. Throws Error(not_found) for a rule that does not exist, Error(invalid_argument) for options that
/// do not fit, and what a rule throws.
OptimizeReport optimize(GraphModule& module, const OptimizeOptions& options = {});

}  // namespace fx
