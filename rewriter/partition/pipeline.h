// Pipeline: the stages of a program run by as many processes, micro-batch after micro-batch.
//
//   fx::Pipeline pipe(stages, workers);                       // in every process; its rank is its stage
//   torch::Tensor y = pipe.forward(x, {.micro_batches = 8});  // x counts on rank 0, y is there on the last
//
//   torch::optim::SGD sgd(pipe.module().parameters(), 0.1);   // of this stage alone
//   pipe.train_step({x}, {labels}, loss, {.micro_batches = 8});  // labels and loss count on the last rank
//   sgd.step();
//
// Every process calls the same functions in the same order. Inputs and targets are cut along their first dimension;
// what has another size there goes whole to every micro-batch. So the program may not mix the samples of a batch, as
// BatchNorm does in training: a micro-batch is a batch of its own. Gradients flow back through the stages; parameters
// that several stages have get the sum of theirs.
//
// Faults: a rank that dies, hangs or throws makes every other rank throw Error(execution) that names it, within the
// time limit of the workers. After an error the pipeline is of no use. Thread-safety: none.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/partition/pipeline_plan.h>
#include <fxgraph/rewriter/partition/process_group.h>

namespace fx {

/// How a batch goes through the stages; equal on all ranks.
struct PipelineRun {
  /// In training: `fill_drain` holds the activations of all micro-batches at once, `one_forward_one_backward` of at
  /// most as many as there are stages.
  enum class Schedule : std::uint8_t { fill_drain, one_forward_one_backward };
  std::size_t micro_batches = 1;                           ///< pieces of a batch, at most as many as it has samples
  Schedule schedule = Schedule::one_forward_one_backward;  ///< in training: when a micro-batch goes back
};

/// What this process did since the pipeline was made.
struct PipelineStatistics {
  double busy_seconds = 0;             ///< in its stage, forward and backward
  double processor_seconds = 0;        ///< of those, the time for which this thread had a processor
  double waiting_seconds = 0;          ///< for other ranks
  std::int64_t sent_bytes = 0;         ///< to other ranks, 512 at the head of each message included
  std::size_t peak_micro_batches = 0;  ///< held at once for their backward
};

/// The stage of this process, and its connection to the others; see the top of this file.
class Pipeline {
 public:
  /// Takes the mean loss of a micro-batch: what the program returned for it, and its part of the targets.
  using Loss = std::function<torch::Tensor(const c10::IValue& output, const std::vector<torch::Tensor>& targets)>;

  /// All ranks check that they have the same plan. Throws Error(invalid_argument) when there are not as many workers as
  /// stages, or when a rank has another plan.
  Pipeline(const PipelineStages& stages, Workers workers);
  /// For a process that has its own stage alone.
  Pipeline(PipelinePlan plan, std::shared_ptr<GraphModule> stage, Workers workers);
  ~Pipeline();

  /// Returns on the last rank what the program returns, None on the others. Without gradients.
  c10::IValue run(const std::vector<c10::IValue>& inputs, const PipelineRun& how = {});
  /// The same for a program that returns a tensor; undefined on the other ranks.
  torch::Tensor forward(const torch::Tensor& input, const PipelineRun& how = {});

  /// Adds the gradients of the batch's mean loss to those of the stage's parameters, as backward() does; returns the
  /// loss on the last rank, an undefined tensor on the others.
  torch::Tensor train_step(const std::vector<c10::IValue>& inputs, const std::vector<torch::Tensor>& targets,
                           const Loss& loss, const PipelineRun& how = {});

  /// The stage of this rank: its parameters are those that train_step gives gradients to.
  GraphModule& module() { return *module_; }
  /// The plan, equal on all ranks.
  const PipelinePlan& plan() const { return plan_; }
  /// What this rank did so far, in all calls.
  PipelineStatistics statistics() const;
  /// Waits until every rank has come here; rank 0 keeps the store and goes last.
  void finish();

 private:
  class Wiring;
  class Step;

  PipelinePlan plan_;
  std::shared_ptr<GraphModule> module_;
  Workers workers_;
  std::unique_ptr<const Wiring> wiring_;
  PipelineStatistics statistics_;
};

}  // namespace fx
