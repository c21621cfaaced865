// Sends do not wait, receives do; every rank goes through the micro-batches in one order, so nobody waits for somebody
// who waits for him. A micro-batch keeps what it received (leaves of autograd, whose gradients go back) and what it
// gave (roots, whose gradients come back).
#include <fxgraph/rewriter/partition/pipeline.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include <fxgraph/rewriter/partition/pipeline_wiring.h>
#include <fxgraph/rewriter/partition/stopwatch.h>
#include <fxgraph/rewriter/partition/wire.h>
#include <fxgraph/run/micro_batches.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using Values = std::map<WiredValue, c10::IValue>;

bool wants_gradient(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().requires_grad();
}

}  // namespace

/// One run over all micro-batches, on one rank.
class Pipeline::Step {
 public:
  Step(Pipeline& pipeline, const PipelineRun& how)
      : pipe_(pipeline),
        wiring_(*pipeline.wiring_),
        workers_(pipeline.workers_),
        how_(how),
        rank_(pipeline.workers_.rank()),
        last_(pipeline.workers_.world() - 1) {}

  c10::IValue run(const std::vector<c10::IValue>& inputs) {
    at::NoGradGuard inference;
    if (how_.micro_batches > 1 && !pipe_.plan_.not_joined.empty()) {
      throw Error(ErrorKind::invalid_argument,
                  "micro-batches do not make up the batch: " + pipe_.plan_.not_joined + "; run it as one micro-batch");
    }
    begin(inputs);
    std::vector<c10::IValue> results;
    for (std::size_t i = 0; i < how_.micro_batches; ++i) {
      // What was sent is held until it is received: a fast stage may not run ahead with the whole batch.
      workers_.finish_sends(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(kPipelineAhead));
      const Values values = forward(i, false);
      if (rank_ == last_) results.push_back(wiring_.output(values));
    }
    workers_.finish_sends();
    if (rank_ == last_ && results.size() > 1 && batch_ < 0) {
      throw Error(
          ErrorKind::invalid_argument,
          "the last stage gets nothing of the batch, so its results cannot be joined: run it as one micro-batch");
    }
    return rank_ == last_ ? join(results, batch_) : c10::IValue();
  }

  at::Tensor train(const std::vector<c10::IValue>& inputs, const std::vector<at::Tensor>& targets, const Loss& loss) {
    at::AutoGradMode gradients(true);
    begin(inputs);
    set_tied_aside();
    if (rank_ == last_ && !targets.empty()) {
      target_batch_ = batch_of(c10::IValue(targets.front()));
      check_batch(target_batch_, how_.micro_batches);
    }
    const std::size_t count = how_.micro_batches;
    const bool fill = how_.schedule == PipelineRun::Schedule::fill_drain;
    const std::size_t ahead = fill ? count : std::min<std::size_t>(count, static_cast<std::size_t>(last_ - rank_));
    std::size_t next = 0;
    for (; next < ahead; ++next) forward_and_keep(next, targets, loss);
    for (std::size_t done = 0; done < count; ++done) {
      if (next < count) forward_and_keep(next++, targets, loss);
      backward(done);
    }
    add_tied();
    add_earlier();
    workers_.finish_sends();
    return total_;
  }

 private:
  /// A micro-batch between its forward and its backward.
  struct Kept {
    Values values;
    at::Tensor loss;
  };

  void begin(const std::vector<c10::IValue>& inputs) {
    if (rank_ != 0) return;
    inputs_ = wiring_.bind(inputs);
    batch_ = batch_of(inputs);
    check_batch(batch_, how_.micro_batches);
  }

  /// Where a micro-batch goes forward or back.
  static Channel forth(std::size_t i) { return {static_cast<std::int64_t>(i), false}; }
  static Channel back(std::size_t i) { return {static_cast<std::int64_t>(i), true}; }

  // With the values: what the sender believes that everybody does, and which of the values want a gradient.
  enum Word : std::uint8_t { kBatch, kMicroBatches, kTraining, kWords };
  std::vector<std::int64_t> words(bool training) const {
    return {batch_, static_cast<std::int64_t>(how_.micro_batches), training ? 1 : 0};
  }
  void check_words(int from, const std::vector<std::int64_t>& theirs, bool training) {
    const std::vector<std::int64_t> ours = words(training);
    if (theirs.size() == kWords && theirs[kMicroBatches] == ours[kMicroBatches] &&
        theirs[kTraining] == ours[kTraining]) {
      if (theirs[kBatch] >= 0) batch_ = theirs[kBatch];
      return;
    }
    const auto say = [](const std::vector<std::int64_t>& what) {
      if (what.size() != kWords) return std::string("does something else");
      return std::string(what[kTraining] ? "trains" : "runs") + " in " + std::to_string(what[kMicroBatches]) +
             " micro-batches";
    };
    throw Error(ErrorKind::invalid_argument, "rank " + std::to_string(from) + " " + say(theirs) + " and this one " +
                                                 say(ours) + ": all ranks must call the same");
  }

  Values forward(std::size_t i, bool training) {
    Values values;
    if (rank_ == 0) {
      for (const auto& [name, value] : inputs_) values[name] = cut(value, batch_, i, how_.micro_batches);
    }
    for (int from = 0; from < rank_; ++from) receive(from, values, i, training);
    // What comes next is asked for, so that it is there when this is done.
    for (int from = 0; from < rank_ && i + 1 < how_.micro_batches; ++from) {
      if (!wiring_.needs(rank_, from).empty()) coming_.emplace(from, Incoming(workers_, from, forth(i + 1)));
    }
    run_stage(values);
    for (int to = rank_ + 1; to <= last_; ++to) send_results(to, values, i, training);
    return values;
  }

  void send_results(int to, const Values& values, std::size_t i, bool training) {
    const std::vector<WiredValue>& needed = wiring_.needs(to, rank_);
    if (needed.empty()) return;
    std::vector<c10::IValue> list;
    std::vector<std::int64_t> notes = words(training);
    for (const WiredValue& name : needed) {
      list.push_back(values.at(name));
      notes.push_back(wants_gradient(values.at(name)));
      if (training && holds_tensors(values.at(name))) {
        throw Error(ErrorKind::unsupported,
                    "a list of tensors goes to rank " + std::to_string(to) +
                        ", whose gradients would not come back: let the program take it apart, or return its tensors");
      }
    }
    send_values(workers_, list, notes, to, forth(i));
  }

  void receive(int from, Values& values, std::size_t i, bool training) {
    const std::vector<WiredValue>& needed = wiring_.needs(rank_, from);
    if (needed.empty()) return;
    const Stopwatch waiting(pipe_.statistics_.waiting_seconds);
    auto incoming = coming_.extract(from);
    const auto [list, notes] = (incoming ? std::move(incoming.mapped()) : Incoming(workers_, from, forth(i))).receive();
    if (list.size() != needed.size() || notes.size() != kWords + needed.size()) {
      throw Error(ErrorKind::execution, "rank " + std::to_string(from) + " sent other values than the " +
                                            std::to_string(needed.size()) + " that are needed");
    }
    check_words(from, {notes.begin(), notes.begin() + kWords}, training);
    for (std::size_t k = 0; k < needed.size(); ++k) {
      if (training && notes[kWords + k]) list[k].toTensor().requires_grad_();
      values[needed[k]] = list[k];
    }
  }

  void run_stage(Values& values) {
    const Stopwatch busy(pipe_.statistics_.busy_seconds);
    const ProcessorClock computing(pipe_.statistics_.processor_seconds);
    std::vector<c10::IValue> inputs;
    for (const WiredValue& name : wiring_.inputs(rank_)) inputs.push_back(values.at(name));
    const c10::IValue result = pipe_.module_->run(std::move(inputs));
    if (!wiring_.returns_tuple(rank_)) {
      values[{rank_, 0}] = result;
      return;
    }
    const auto& elements = result.toTupleRef().elements();
    for (std::size_t k = 0; k < elements.size(); ++k) values[{rank_, static_cast<int>(k)}] = elements[k];
  }

  void forward_and_keep(std::size_t i, const std::vector<at::Tensor>& targets, const Loss& loss) {
    Kept kept{forward(i, true), {}};
    if (rank_ == last_) {
      const Stopwatch busy(pipe_.statistics_.busy_seconds);
      const ProcessorClock computing(pipe_.statistics_.processor_seconds);
      std::vector<at::Tensor> part;
      for (const at::Tensor& target : targets)
        part.push_back(cut(c10::IValue(target), target_batch_, i, how_.micro_batches).toTensor());
      const double weight = target_batch_ > 0
                                ? static_cast<double>(part_of(target_batch_, i, how_.micro_batches).second) /
                                      static_cast<double>(target_batch_)
                                : 1.0 / static_cast<double>(how_.micro_batches);
      kept.loss = loss(wiring_.output(kept.values), part) * weight;
      total_ = total_.defined() ? total_ + kept.loss.detach() : kept.loss.detach();
    }
    kept_[i] = std::move(kept);
    pipe_.statistics_.peak_micro_batches = std::max(pipe_.statistics_.peak_micro_batches, kept_.size());
  }

  void backward(std::size_t i) {
    Kept kept = std::move(kept_.at(i));
    kept_.erase(i);
    std::map<WiredValue, at::Tensor> gradients;
    for (int from = rank_ + 1; from <= last_; ++from) receive_gradients(from, kept.values, gradients, i);
    {
      const Stopwatch busy(pipe_.statistics_.busy_seconds);
      const ProcessorClock computing(pipe_.statistics_.processor_seconds);
      std::vector<at::Tensor> roots, given;
      if (kept.loss.defined() && kept.loss.requires_grad()) {
        roots.push_back(kept.loss);
        given.emplace_back();
      }
      for (const auto& [name, gradient] : gradients) {
        roots.push_back(kept.values.at(name).toTensor());
        given.push_back(gradient);
      }
      if (!roots.empty()) torch::autograd::backward(roots, given);
    }
    for (int to = 0; to < rank_; ++to) send_gradients(to, kept.values, i);
    // By now every rank has what this one sent two rounds ago: it need not be held any longer.
    workers_.finish_sends(static_cast<std::int64_t>(i) - 2 * (last_ + 1));
  }

  void receive_gradients(int from, const Values& values, std::map<WiredValue, at::Tensor>& gradients, std::size_t i) {
    const std::vector<WiredValue>& needed = wiring_.needs(from, rank_);
    if (needed.empty()) return;
    const Stopwatch waiting(pipe_.statistics_.waiting_seconds);
    const std::vector<c10::IValue> list = Incoming(workers_, from, back(i)).receive().values;
    for (std::size_t k = 0; k < needed.size(); ++k) {
      const at::Tensor gradient = list.at(k).toTensor();
      if (!gradient.defined() || !wants_gradient(values.at(needed[k]))) continue;
      at::Tensor& sum = gradients[needed[k]];
      sum = sum.defined() ? sum + gradient : gradient;
    }
  }

  void send_gradients(int to, const Values& values, std::size_t i) {
    const std::vector<WiredValue>& needed = wiring_.needs(rank_, to);
    if (needed.empty()) return;
    std::vector<c10::IValue> list;
    for (const WiredValue& name : needed) {
      const c10::IValue& value = values.at(name);
      list.emplace_back(wants_gradient(value) ? value.toTensor().grad() : at::Tensor());
    }
    send_values(workers_, list, {}, to, back(i));
  }

  at::Tensor received_tensor(int from, Channel channel) {
    return Incoming(workers_, from, channel).receive().values.at(0).toTensor();
  }

  // What a tied parameter has from earlier steps is in every stage already: only this step's gradients are added up.
  void set_tied_aside() {
    for (const TiedParameter& tied : pipe_.plan_.tied) {
      for (const auto& [stage, path] : tied.places) {
        if (static_cast<int>(stage) != rank_) continue;
        at::Tensor parameter = pipe_.module_->attribute(path);
        earlier_.emplace_back(parameter, std::exchange(parameter.mutable_grad(), at::Tensor()));
      }
    }
  }

  void add_earlier() {
    const at::NoGradGuard no_grad;
    for (auto& [parameter, before] : earlier_) {
      if (!before.defined()) continue;
      at::Tensor& sum = parameter.mutable_grad();
      if (sum.defined()) before.add_(sum);
      sum = before;
    }
  }

  // The first place adds up what the others send, and sends back the sum.
  void add_tied() {
    const Channel up = forth(how_.micro_batches), down = back(how_.micro_batches);
    for (const TiedParameter& tied : pipe_.plan_.tied) {
      const int owner = static_cast<int>(tied.places.front().first);
      for (const auto& [stage, path] : tied.places) {
        const int other = static_cast<int>(stage);
        if (other == owner || (rank_ != owner && rank_ != other)) continue;
        at::Tensor parameter = pipe_.module_->attribute(rank_ == owner ? tied.places.front().second : path);
        if (rank_ == other) {
          send_values(workers_, {parameter.grad()}, {}, owner, up);
        } else if (const at::Tensor more = received_tensor(other, up); more.defined()) {
          at::Tensor& sum = parameter.mutable_grad();
          sum = sum.defined() ? sum + more : more;
        }
      }
      for (const auto& [stage, path] : tied.places) {
        const int other = static_cast<int>(stage);
        if (other == owner || (rank_ != owner && rank_ != other)) continue;
        at::Tensor parameter = pipe_.module_->attribute(rank_ == owner ? tied.places.front().second : path);
        if (rank_ == owner) {
          send_values(workers_, {parameter.grad()}, {}, other, down);
        } else {
          parameter.mutable_grad() = received_tensor(owner, down);
        }
      }
    }
  }

  Pipeline& pipe_;
  const Wiring& wiring_;
  Workers& workers_;
  const PipelineRun& how_;
  int rank_, last_;
  Values inputs_;
  std::int64_t batch_ = -1, target_batch_ = -1;
  std::map<std::size_t, Kept> kept_;
  std::map<int, Incoming> coming_;                          // the next micro-batch, by rank
  std::vector<std::pair<at::Tensor, at::Tensor>> earlier_;  // tied parameters, and their gradients before this step
  at::Tensor total_;
};

namespace {

std::shared_ptr<GraphModule> own_stage(const PipelineStages& stages, const Workers& workers) {
  const auto rank = static_cast<std::size_t>(workers.rank());
  return rank < stages.modules.size() ? stages.modules[rank] : nullptr;
}

/// What it throws is told to the others.
template <typename Action>
auto tell_others(Workers& workers, Action&& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    const std::string self = "rank " + std::to_string(workers.rank());
    const std::string what = error.what();
    const std::string text = what.starts_with(self) ? what : self + ": " + what;
    workers.give_up(text);
    throw Error(ErrorKind::execution, text);
  }
}

}  // namespace

Pipeline::Pipeline(const PipelineStages& stages, Workers workers)
    : Pipeline(stages.plan, own_stage(stages, workers), workers) {}

Pipeline::Pipeline(PipelinePlan plan, std::shared_ptr<GraphModule> stage, Workers workers)
    : plan_(std::move(plan)), module_(std::move(stage)), workers_(std::move(workers)) {
  tell_others(workers_, [&] {
    wiring_ = std::make_unique<const Wiring>(plan_);
    if (workers_.world() != wiring_->num_stages()) {
      throw Error(ErrorKind::invalid_argument, "the plan has " + std::to_string(wiring_->num_stages()) +
                                                   " stages and there are " + std::to_string(workers_.world()) +
                                                   " ranks: start one for each stage");
    }
    if (!module_) throw Error(ErrorKind::invalid_argument, "there is no module for this stage");
    const std::size_t inputs = module_->graph().placeholders().size();
    if (inputs != wiring_->inputs(workers_.rank()).size()) {
      throw Error(ErrorKind::invalid_argument, "its stage takes " + std::to_string(inputs) +
                                                   " values, the plan gives " +
                                                   std::to_string(wiring_->inputs(workers_.rank()).size()));
    }
    const std::vector<std::string> plans = workers_.exchange("plan", plan_.digest());
    for (std::size_t other = 0; other < plans.size(); ++other) {
      if (plans[other] != plan_.digest()) {
        throw Error(ErrorKind::invalid_argument,
                    "rank " + std::to_string(other) + " has another plan: give all ranks the same files");
      }
    }
  });
}

Pipeline::~Pipeline() = default;

c10::IValue Pipeline::run(const std::vector<c10::IValue>& inputs, const PipelineRun& how) {
  return tell_others(workers_, [&] { return Step(*this, how).run(inputs); });
}

torch::Tensor Pipeline::forward(const torch::Tensor& input, const PipelineRun& how) {
  const c10::IValue result = run({input}, how);
  return result.isNone() ? torch::Tensor() : result.toTensor();
}

torch::Tensor Pipeline::train_step(const std::vector<c10::IValue>& inputs, const std::vector<torch::Tensor>& targets,
                                   const Loss& loss, const PipelineRun& how) {
  return tell_others(workers_, [&] { return Step(*this, how).train(inputs, targets, loss); });
}

PipelineStatistics Pipeline::statistics() const {
  PipelineStatistics result = statistics_;
  result.sent_bytes = workers_.bytes_sent();
  return result;
}

void Pipeline::finish() { workers_.leave(); }

}  // namespace fx
