#include <fxgraph/rewriter/rules/whole_program.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include <fxgraph/module/state_keeper.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::rules {

namespace {

constexpr int kLeastTurns = 2, kMostTurns = 7;
constexpr double kShort = 0.01;  // seconds, for which more rounds cost nothing

at::Tensor sample_of(const TensorInfo& info) {
  const at::Tensor zeros = zeros_like_info(info);
  return at::isFloatingType(zeros.scalar_type()) ? at::rand_like(zeros) : zeros;
}

double seconds_of(GraphModule& module, const std::vector<c10::IValue>& inputs) {
  const auto start = std::chrono::steady_clock::now();
  module.run(inputs);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::optional<OptimizeReport::Undone> slower_in_turn(GraphModule& kept, GraphModule& changed,
                                                     const std::vector<TensorInfo>& inputs, double limit) {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(kept), keeper_of_changed(changed);
  std::vector<c10::IValue> values;
  for (const TensorInfo& info : inputs) values.emplace_back(sample_of(info));
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
