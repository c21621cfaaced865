// split_pipeline: a program in stages, one for each process, and the plan by which they work together.
//
//   fx::PipelineStages stages = fx::split_pipeline(*gm, 4, {x});
//   std::cout << stages.plan.str();        // seconds, bytes of weights, bytes sent, by stage
//   fx::Pipeline pipe(stages, fx::connect({.rank = rank, .world = 4}));
//
// Stages are balanced by time and cut where the fewest bytes go over (stage_cuts.h). What shares storage that the
// program writes (an in-place update and what reads before it, a buffer that is kept) stays in one stage, because a
// value that is sent is a copy. What cannot be told apart then is refused by name: programs that write to their inputs,
// and random draws in a program of several stages unless they are allowed, as each process draws its own numbers.
//
// Thread-safety: none.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

/// How a program is cut into stages.
struct PipelineOptions {
  /// Where the time of a call comes from: its operations and bytes, or the median of a few runs.
  enum class Cost : std::uint8_t { modelled, measured };
  Cost cost = Cost::modelled;  ///< what stages are balanced by
  /// How much slower than it could be the slowest stage may be, so that less is sent.
  double slack = 0.1;
  /// Bytes of parameters and buffers of a stage; 0: no limit.
  std::int64_t max_weights = 0;
  /// Bytes of those and of a stage's activations at once, for one micro-batch in a forward; 0: no limit.
  std::int64_t max_memory = 0;
  /// Into how many micro-batches the examples are cut: costs and peaks are those of one.
  std::size_t micro_batches = 1;
  /// Random draws are allowed: each stage draws from the generator of its process.
  bool allow_random = false;
};

/// A rank runs at most so many micro-batches ahead of those that take from it.
inline constexpr std::size_t kPipelineAhead = 4;

/// What is expected of a stage, for inputs like the examples.
struct StageForecast {
  std::size_t nodes = 0;          ///< of the program, in the stage
  double seconds = 0;             ///< of a forward, of all micro-batches; modelled ones are those of no machine, only
                                  ///< their ratios count
  std::int64_t weight_bytes = 0;  ///< of its parameters and buffers
  std::int64_t peak_bytes = 0;    ///< of a micro-batch's activations at once, in a forward
  std::int64_t sent_bytes = 0;    ///< to other stages, of all micro-batches
  std::vector<std::pair<std::size_t, std::int64_t>> sends{};  ///< the same by stage
};

/// Where and how a plan is carried out.
struct PipelineSetting {
  std::size_t micro_batches = 1;  ///< of a batch
  std::size_t rounds = 1;         ///< batches, one right after the other; of several the first is not counted
  /// By stage, the machine it runs on. Without them each stage has a machine for itself.
  std::vector<std::size_t> machine_of{};
  /// By machine, how many stages can compute on it at once as fast as alone: its processors by the threads of a stage.
  std::vector<double> processors{};
  double bytes_per_second = 1e9;  ///< between two stages
  double message_seconds = 3e-4;  ///< what a message takes beside its bytes
};

/// What comes of it.
struct PipelineForecast {
  double seconds = 0;        ///< of a round
  std::vector<double> busy;  ///< by stage, the part of its time for which it has a processor
  double bubble = 0;         ///< the part of all stages' time in which they wait, for others or for a processor
};

/// A parameter that several stages have: their gradients are added up.
struct TiedParameter {
  std::vector<std::pair<std::size_t, std::string>> places;  ///< stage and path in it, the first keeps the sum
};

/// How stages work together; the same in every process, as text where it has to travel.
struct PipelinePlan {
  /// The graph that calls stage_0, stage_1, …: who gives what to whom, as FX text.
  std::string wiring;
  std::vector<StageForecast> stages;  ///< by number of the stage
  std::vector<TiedParameter> tied;    ///< parameters that more than one stage has
  bool measured = false;              ///< the seconds were measured
  std::size_t micro_batches = 1;      ///< in so many
  int threads = 0;                    ///< of so many threads; 0: not measured
  /// Why the results of micro-batches are not the whole's in rows: their shapes change with the batch in another way.
  /// Empty when they are, or when it is not known.
  std::string not_joined;

  /// Plays the forwards of a batch like the examples through: who computes when, waits for whom, shares which machine's
  /// processors. Stages that share a processor are slower. Seconds of a plan that was not measured are those of no
  /// machine, and its messages take no time.
  /// Throws Error(invalid_argument) when the setting does not fit the stages.
  PipelineForecast forecast(const PipelineSetting& setting = {}) const;
  /// A table, a line a stage: times where they were measured, else shares of the work.
  std::string str() const;
  /// The text that from_json() reads.
  std::string json() const;
  /// Throws Error(syntax) when the text is no plan.
  static PipelinePlan from_json(const std::string& text);
  /// Equal plans have equal ones.
  std::string digest() const;
};

/// What split_pipeline() returns.
struct PipelineStages {
  PipelinePlan plan;  ///< how they work together
  /// By stage; a process that runs one stage needs its own alone.
  std::vector<std::shared_ptr<GraphModule>> modules;
};

/// Cuts the program, which stays as it is; tensors are shared. Throws Error(invalid_argument) when it cannot be cut
/// into so many stages, Error(unsupported) naming the node when a stage would not see what another writes.
PipelineStages split_pipeline(GraphModule& module, std::size_t stages, const std::vector<c10::IValue>& examples,
                              const PipelineOptions& options = {});

}  // namespace fx
