#include <fxgraph/rewriter/rules/whole_program.h>

#include <ATen/ATen.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>

#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::rules {

namespace {

constexpr int kLeastTurns = 2, kMostTurns = 7;
constexpr double kShort = 0.01;  // seconds, for which more rounds cost nothing

/// Gives free memory back to the system.
void forget_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

at::Tensor sample_of(const TensorInfo& info) {
  const at::Tensor zeros = zeros_like_info(info);
  return at::isFloatingType(zeros.scalar_type()) ? at::rand_like(zeros) : zeros;
}

double seconds_of(GraphModule& module, const std::vector<c10::IValue>& inputs) {
  const auto start = std::chrono::steady_clock::now();
  module.run(inputs);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<c10::IValue> samples_of(const std::vector<TensorInfo>& inputs) {
  std::vector<c10::IValue> values;
  for (const TensorInfo& info : inputs) values.emplace_back(sample_of(info));
  return values;
}

/// Tensors in order, in tuples and lists, too: results that are cut and joined keep how they lie in memory.
bool same_strides(const c10::IValue& a, const c10::IValue& b) {
  const TensorInfos of_a = tensor_infos(a), of_b = tensor_infos(b);
  return std::ranges::equal(of_a, of_b, [](const TensorInfo& x, const TensorInfo& y) {
    return x.sizes == y.sizes && (x.strides == y.strides || (x.is_contiguous() && y.is_contiguous()));
  });
}

/// Times of a size of micro-batches; 0: whole.
struct Timed {
  std::int64_t size = 0;
  std::vector<double> seconds{};

  double least() const { return *std::ranges::min_element(seconds); }
  Measured measured() const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    const double low = sorted[sorted.size() / 4];
    return {size == 0 ? "whole" : "micro-batches of " + std::to_string(size), low, sorted[sorted.size() * 3 / 4] - low};
  }
};

class MicroBatchTrial {
 public:
  MicroBatchTrial(GraphModule& module, const std::vector<TensorInfo>& inputs, MicroBatches cut)
      : module_(module), values_(samples_of(inputs)), cut_(std::move(cut)) {}

  /// Nothing when the inputs are no batch of two samples or more.
  std::optional<std::int64_t> batch() const { return MicroBatches{1, cut_.inputs}.to_cut(values_); }

  /// Halves while that is not slower, then the best of them again, in turn with the whole.
  Choice run(std::int64_t batch) {
    whole_ = take(0);
    std::vector<Timed> tried{{0}};
    add_turn(tried[0]);
    for (std::int64_t size = batch; size > 1;) {
      size = (size + 1) / 2;
      check(size);
      tried.push_back({size});
      add_turn(tried.back());
      if (tried.back().least() > kNotSlower * std::ranges::min_element(tried, {}, &Timed::least)->least()) break;
    }
    std::ranges::sort(tried.begin() + 1, tried.end(), {}, &Timed::least);
    const std::size_t again = std::min<std::size_t>(tried.size(), 3);
    double all = 0;
    for (int turn = 0; turn < kLeastTurns || (turn < kMostTurns && all < kShort); ++turn) {
      for (std::size_t i = 0; i < again; ++i) all += add_turn(tried[i]);
    }
    Choice choice{.what = "the whole program", .places = 1};
    for (const Timed& each : tried) choice.measured.push_back(each.measured());
    const auto best = std::ranges::min_element(tried.begin(), tried.begin() + std::ptrdiff_t(again), {}, &Timed::least);
    choice.fastest = best->least() < kFaster * tried[0].least() ? static_cast<std::size_t>(best - tried.begin()) : 0;
    set(tried[choice.fastest].size);
    return choice;
  }

 private:
  static constexpr double kFaster = 0.98, kNotSlower = 1.03;

  void set(std::int64_t size) {
    cut_.size = size;
    module_.set_micro_batches(cut_);
  }
  c10::IValue take(std::int64_t size) {
    set(size);
    return module_.run(values_);
  }
  /// A run in memory that the system gives page by page, and one in memory that the last run has left: which of the two
  /// a run meets depends on what else a process does, and the mean of both is what counts.
  double add_turn(Timed& timed) {
    set(timed.size);
    forget_free_memory();
    const double in_new_memory = seconds_of(module_, values_);
    return timed.seconds.emplace_back((in_new_memory + seconds_of(module_, values_)) / 2);
  }
  void check(std::int64_t size) {
    const c10::IValue joined = take(size);
    double tolerance = 0;
    for (const TensorInfo& info : tensor_infos(whole_))
      tolerance = std::max(tolerance, usual_tolerance(to_scalar_type(info.dtype)));
    if (const double difference = relative_difference(whole_, joined); !(difference <= tolerance))
      throw Error(ErrorKind::execution, "cut into micro-batches of " + std::to_string(size) +
                                            ", the program computes something else, by " + std::to_string(difference));
    if (!same_strides(whole_, joined)) throw Error(ErrorKind::unsupported, "its results lie otherwise in memory");
  }

  GraphModule& module_;
  std::vector<c10::IValue> values_;
  c10::IValue whole_;
  MicroBatches cut_;
};

}  // namespace

std::optional<Choice> cut_into_micro_batches(GraphModule& module, const std::vector<TensorInfo>& inputs,
                                             const MicroBatches& cut) {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(module);
  MicroBatchTrial trial(module, inputs, cut);
  const std::optional<std::int64_t> batch = trial.batch();
  if (!batch) return std::nullopt;
  try {
    return trial.run(*batch);
  } catch (...) {
    module.set_micro_batches({});
    throw;
  }
}

std::optional<OptimizeReport::Undone> slower_in_turn(GraphModule& kept, GraphModule& changed,
                                                     const std::vector<TensorInfo>& inputs, double limit) {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(kept), keeper_of_changed(changed);
  const std::vector<c10::IValue> values = samples_of(inputs);
  try {
    seconds_of(kept, values);  // makes the plans
    seconds_of(changed, values);
    OptimizeReport::Undone least{seconds_of(kept, values), seconds_of(changed, values)};
    double all = least.kept + least.undone;
    for (int turn = 1; turn < kMostTurns || all < kShort; ++turn) {
      if (turn >= kLeastTurns && least.undone <= limit * least.kept) return std::nullopt;
      const OptimizeReport::Undone next{seconds_of(kept, values), seconds_of(changed, values)};
      least = {std::min(least.kept, next.kept), std::min(least.undone, next.undone)};
      all += next.kept + next.undone;
    }
    if (least.undone <= limit * least.kept) return std::nullopt;
    return least;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace fx::rules
