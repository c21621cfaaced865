#include <fxgraph/rewriter/quantize/engine_cache.h>

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

namespace {

constexpr double kNear = 0x1p-20;  // of a key's numbers, as floats are computed
constexpr double kStep = 0x1p-18;

using ZeroPoints = std::pair<std::int64_t, std::int64_t>;

struct Entry {
  std::vector<double> ratios;  ///< by channel: scale of the input times scale of the weight
  double scale;                ///< of the result
  ZeroPoints zero_points;

  /// True for the same key as that of a layer with `others` and `result`.
  bool looks_like(const std::vector<double>& others, double result) const {
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      if (std::abs(ratios[i] / scale * result / others[i] - 1) > kNear) return false;
    }
    return true;
  }
};

/// What was given out, for the whole process.
class Keys {
 public:
  static Keys& of_process() {
    static auto& keys = *new Keys;
    return keys;
  }

  /// A scale near `scale` under which nobody else has other zero points.
  double claim(const std::string& layer, const std::vector<double>& ratios, double scale, ZeroPoints zero_points) {
    const std::lock_guard lock(mutex_);
    std::vector<Entry>& entries = entries_[layer];
    for (int step = 0;; ++step) {
      const double result = static_cast<float>(scale * (1 + step * kStep));
      bool taken = false, known = false;
      for (const Entry& each : entries) {
        if (!each.looks_like(ratios, result)) continue;
        (each.zero_points == zero_points ? known : taken) = true;
      }
      if (taken) continue;
      if (!known) entries.push_back({ratios, result, zero_points});
      return step ? result : scale;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<Entry>> entries_;
};

std::vector<double> scales_of(const at::Tensor& weight) {
  if (weight.qscheme() == at::kPerTensorAffine) return {weight.q_scale()};
  const at::Tensor scales = weight.q_per_channel_scales().to(at::kDouble).contiguous();
  return {scales.data_ptr<double>(), scales.data_ptr<double>() + scales.numel()};
}

}  // namespace

void keep_apart(Graph& graph, const std::unordered_map<std::string, at::Tensor>& weights) {
  for (Node& node : graph.nodes()) {
    if (!node.is(Op::call_function) || node.args().size() != 4 || !node.arg(1).is_node()) continue;
    const auto weight = weights.find(node.arg(1).node().target().str());
    const Node* input = node.arg(0).node_or_null();
    if (weight == weights.end() || !input) continue;
    const auto grid = grid_of(*input);
    if (!grid) continue;
    std::string layer = node.target().str();
    for (const std::int64_t size : weight->second.sizes()) layer += " " + std::to_string(size);
    std::vector<double> ratios = scales_of(weight->second);
    for (double& each : ratios) each *= grid->scale;
    const Grid result{node.arg(2).as_float(), node.arg(3).as_int()};
    const double claimed = Keys::of_process().claim(layer, ratios, result.scale, {grid->zero_point, result.zero_point});
    if (claimed == result.scale) continue;
    Grid apart = grid_of(node).value_or(result);
    apart.scale = claimed;
    node.update_arg(2, claimed);
    node.meta().set(meta_key::kGrid, apart);
  }
}

}  // namespace fx::quantize
