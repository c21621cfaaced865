// How a GraphModule runs: by its plan, in memory that is held, batches cut into micro-batches.
#include <algorithm>
#include <optional>

#include <fxgraph/module/fixed_runs.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/run/held_memory.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/support/error.h>

namespace fx {

void GraphModule::recompile() {
  std::shared_ptr<const Plan> fresh = Plan::compile(*this);
  const std::lock_guard lock(plan_mutex_);
  plan_ = std::move(fresh);
}

std::shared_ptr<const Plan> GraphModule::plan() {
  const std::lock_guard lock(plan_mutex_);
  if (!plan_ || !plan_->is_current(*this)) plan_ = Plan::compile(*this);
  return plan_;
}

c10::IValue GraphModule::run(std::vector<c10::IValue> inputs) {
  if (!fixed_mode_.empty()) internal::FixedRuns::note(fixed_mode_, is_training());
  const std::shared_ptr<const Plan> current = plan();
  const HeldMemory::Scope scope(held_memory_.get());
  const MicroBatches* cut = cuts_batches() ? &micro_batches_ : nullptr;
  const std::optional<std::int64_t> batch = cut ? cut->to_cut(inputs) : std::nullopt;
  if (!batch) return current->run(*this, std::move(inputs));
  const std::size_t parts = cut->num_parts(*batch);
  std::vector<c10::IValue> results;
  for (std::size_t i = 0; i < parts; ++i) results.push_back(current->run(*this, cut->part(inputs, *batch, i, parts)));
  return join(results, *batch);
}

bool GraphModule::cuts_batches() const {
  return micro_batches_.size > 0 && micro_batches_revision_ == graph_.revision();
}

void GraphModule::set_micro_batches(MicroBatches how) {
  const std::size_t taken = graph_.placeholders().size();
  if (how.size > 0 && how.inputs.size() != taken)
    throw Error(ErrorKind::invalid_argument, "set_micro_batches: there are sizes of " +
                                                 std::to_string(how.inputs.size()) + " inputs, and the graph takes " +
                                                 std::to_string(taken));
  if (how.size > 0 && std::ranges::all_of(how.inputs, &MicroBatches::Sizes::empty))
    throw Error(ErrorKind::invalid_argument, "set_micro_batches: no input is cut; give one its sizes");
  micro_batches_ = std::move(how);
  micro_batches_revision_ = graph_.revision();
}

MicroBatches GraphModule::micro_batches() const { return cuts_batches() ? micro_batches_ : MicroBatches(); }

void GraphModule::hold_memory(bool on) {
  if (on == (held_memory_ != nullptr)) return;
  held_memory_ = on ? std::make_unique<HeldMemory>() : nullptr;
}

std::size_t GraphModule::held_bytes() const { return held_memory_ ? held_memory_->bytes() : 0; }

torch::Tensor GraphModule::run_to_tensor(std::vector<c10::IValue> inputs) {
  c10::IValue result = run(std::move(inputs));
  if (!result.isTensor()) {
    throw Error(ErrorKind::invalid_argument,
                "the graph returns a " + result.tagKind() + ", not a tensor: call run() instead of forward()");
  }
  return std::move(result).toTensor();
}

}  // namespace fx
