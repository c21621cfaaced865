#include <fxgraph/rewriter/quantize/keep_float.h>

#include <algorithm>

#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/rewriter/quantize/quantize.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

class Search {
 public:
  Search(const GraphModule& prepared, GraphModule& float_module, const std::vector<std::vector<c10::IValue>>& samples,
         const QuantGoal& goal)
      : prepared_(prepared), float_(float_module), samples_(samples), goal_(goal) {
    for (const QuantReason& each : quantization_reasons(prepared, {.backend = QuantBackend::reference})) {
      if (each.quantized && !each.reason.starts_with("part of ")) layers_.push_back(each.node);
    }
  }

  KeptFloat run(const std::function<void(std::size_t, std::size_t)>& progress) {
    ActivationComparison now = measure({});
    if (!holds(now)) {
      sort_by_noise(progress);
      std::size_t low = 1, high = layers_.size();
      now = measure(first(high));
      if (!holds(now)) fail(now);
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        holds(measure(first(middle))) ? high = middle : low = middle + 1;
      }
      kept_ = first(low);
      now = measure(kept_);
    }
    return {kept_, now.output.sqnr_db, now.agreement, layers_.size()};
  }

 private:
  std::vector<std::string> first(std::size_t count) const {
    return {layers_.begin(), layers_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  ActivationComparison measure(const std::vector<std::string>& keep) {
    const auto converted = convert(prepared_, {.backend = QuantBackend::reference, .keep_float = keep});
    return compare_outputs(float_, *converted, samples_);
  }

  bool holds(const ActivationComparison& comparison) const {
    return comparison.output.sqnr_db >= goal_.min_sqnr_db && comparison.agreement >= goal_.min_agreement;
  }

  void sort_by_noise(const std::function<void(std::size_t, std::size_t)>& progress) {
    std::vector<std::pair<double, std::string>> ratios;
    for (const std::string& layer : layers_) {
      std::vector<std::string> others;
      std::copy_if(layers_.begin(), layers_.end(), std::back_inserter(others),
                   [&](const std::string& each) { return each != layer; });
      ratios.emplace_back(measure(others).output.sqnr_db, layer);
      if (progress) progress(ratios.size(), layers_.size());
    }
    std::stable_sort(ratios.begin(), ratios.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::transform(ratios.begin(), ratios.end(), layers_.begin(), [](const auto& each) { return each.second; });
  }

  [[noreturn]] void fail(const ActivationComparison& best) const {
    throw Error(ErrorKind::mismatch, "with every layer in float the ratio is " + std::to_string(best.output.sqnr_db) +
                                         " dB and the agreement " + std::to_string(best.agreement) +
                                         ": the goal cannot be reached");
  }

  const GraphModule& prepared_;
  GraphModule& float_;
  const std::vector<std::vector<c10::IValue>>& samples_;
  const QuantGoal& goal_;
  std::vector<std::string> layers_, kept_;
};

}  // namespace

KeptFloat keep_float_for(const GraphModule& prepared, GraphModule& float_module,
                         const std::vector<std::vector<c10::IValue>>& samples, const QuantGoal& goal,
                         const std::function<void(std::size_t, std::size_t)>& progress) {
  if (samples.empty()) throw Error(ErrorKind::invalid_argument, "there are no samples to measure on");
  return Search(prepared, float_module, samples, goal).run(progress);
}

}  // namespace fx
