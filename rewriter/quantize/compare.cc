#include <fxgraph/rewriter/quantize/compare.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <unordered_map>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

/// Sums over all samples of one value.
struct Sums {
  double signal = 0, noise = 0, largest = 0, magnitude = 0;

  void add(const at::Tensor& expected, const at::Tensor& found) {
    if (expected.sizes() != found.sizes())
      throw Error(ErrorKind::invalid_argument, "the programs' values do not correspond: their sizes differ");
    if (!expected.numel()) return;
    const at::Tensor x = expected.to(at::kDouble), y = found.to(at::kDouble);
    const at::Tensor same = x.eq(y).logical_or(x.isnan().logical_and(y.isnan()));  // infinity has no difference
    const at::Tensor difference = (x - y).masked_fill(same, 0);
    signal += (x * x).masked_fill(x.isfinite().logical_not(), 0).sum().item<double>();
    noise += (difference * difference).sum().item<double>();
    largest = std::max(largest, difference.abs().max().item<double>());
    magnitude = std::max(magnitude, x.nan_to_num(0, 0, 0).abs().max().item<double>());
  }

  double ratio() const {
    if (!std::isfinite(noise) || !std::isfinite(signal)) return -std::numeric_limits<double>::infinity();
    if (noise == 0) return std::numeric_limits<double>::infinity();
    return 10 * std::log10(signal / noise);
  }
};

at::Tensor as_float(const at::Tensor& tensor) { return tensor.is_quantized() ? tensor.dequantize() : tensor; }

void collect(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) tensors.push_back(as_float(value.toTensor()));
  } else if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) collect(each, tensors);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) collect(each, tensors);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) collect(item.value(), tensors);
  }
}

using Values = std::unordered_map<std::string, at::Tensor>;  // look-up only

c10::IValue run_noting(GraphModule& module, const std::vector<c10::IValue>& inputs, Values& values) {
  Interpreter interpreter(module);
  interpreter.keep_values(true);
  c10::IValue result = interpreter.run(inputs);
  for (const Node& node : module.graph().nodes()) {
    const auto value = interpreter.value_of(node);
    if (!value || !value->isTensor() || node.is(Op::get_attr) || node.is(Op::placeholder)) continue;
    values[node.name()] = as_float(value->toTensor());
  }
  return result;
}

class Comparison {
 public:
  void add(const c10::IValue& expected, const c10::IValue& found) {
    std::vector<at::Tensor> x, y;
    collect(expected, x);
    collect(found, y);
    if (x.size() != y.size())
      throw Error(ErrorKind::invalid_argument, "the programs do not return equally many tensors");
    for (std::size_t i = 0; i < x.size(); ++i) output_.add(x[i], y[i]);
    // Classes stand last, but in images, volumes and their masks after the batch.
    const std::int64_t axis = !x.empty() && x[0].dim() >= 4 ? 1 : -1;
    if (!x.empty() && x[0].dim() >= 1 && x[0].size(axis) > 0 && x[0].is_floating_point()) {
      const at::Tensor same = x[0].argmax(axis).eq(y[0].argmax(axis));
      agreeing_ += same.sum().item<std::int64_t>();
      rows_ += same.numel();
    }
    ++samples_;
  }

  void add(const std::string& node, const std::string& op, const at::Tensor& expected, const at::Tensor& found) {
    if (expected.sizes() != found.sizes() || !expected.is_floating_point()) return;
    const auto [at, is_new] = index_.try_emplace(node, nodes_.size());
    if (is_new) nodes_.push_back({node, op, {}});
    nodes_[at->second].sums.add(expected, found);
  }

  ActivationComparison result() const {
    ActivationComparison made;
    for (const auto& [node, op, sums] : nodes_) made.nodes.push_back(difference(node, op, sums));
    std::stable_sort(made.nodes.begin(), made.nodes.end(),
                     [](const auto& a, const auto& b) { return a.sqnr_db < b.sqnr_db; });
    made.output = difference("output", "", output_);
    made.agreement = rows_ ? static_cast<double>(agreeing_) / static_cast<double>(rows_) : 1;
    made.samples = samples_;
    return made;
  }

 private:
  struct Entry {
    std::string node, op;
    Sums sums;
  };
  static ActivationDifference difference(const std::string& node, const std::string& op, const Sums& sums) {
    return {node, op, sums.ratio(), sums.largest, sums.magnitude};
  }

  Sums output_;
  std::vector<Entry> nodes_;
  std::unordered_map<std::string, std::size_t> index_;
  std::int64_t agreeing_ = 0, rows_ = 0;
  std::size_t samples_ = 0;
};

void check_samples(const std::vector<std::vector<c10::IValue>>& samples) {
  if (samples.empty()) throw Error(ErrorKind::invalid_argument, "there are no samples to compare on");
}

std::string decibels(double ratio) {
  if (std::isinf(ratio)) return ratio > 0 ? "equal" : "nothing in common";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f dB", ratio);
  return text;
}

}  // namespace

ActivationComparison compare_activations(const GraphModule& float_module, GraphModule& quantized,
                                         const std::vector<std::vector<c10::IValue>>& samples) {
  check_samples(samples);
  const at::NoGradGuard no_grad;
  const auto flat = quantize::flat_program(float_module, samples.front());
  const StateKeeper keeper(*flat), quantized_keeper(quantized);
  Comparison comparison;
  for (const std::vector<c10::IValue>& inputs : samples) {
    Values expected, found;
    const c10::IValue x = run_noting(*flat, copies_of(inputs), expected),
                      y = run_noting(quantized, copies_of(inputs), found);
    for (const Node& node : quantized.graph().nodes()) {
      const auto a = expected.find(node.name()), b = found.find(node.name());
      if (a != expected.end() && b != found.end())
        comparison.add(node.name(), node.target().str(), a->second, b->second);
    }
    comparison.add(x, y);
  }
  return comparison.result();
}

ActivationComparison compare_activations(const GraphModule& float_module, GraphModule& quantized,
                                         const std::vector<at::Tensor>& samples) {
  std::vector<std::vector<c10::IValue>> inputs;
  for (const at::Tensor& sample : samples) inputs.push_back({sample});
  return compare_activations(float_module, quantized, inputs);
}

ActivationComparison compare_outputs(GraphModule& float_module, GraphModule& quantized,
                                     const std::vector<std::vector<c10::IValue>>& samples) {
  check_samples(samples);
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(float_module), quantized_keeper(quantized);
  Comparison comparison;
  for (const std::vector<c10::IValue>& inputs : samples)
    comparison.add(float_module.run(copies_of(inputs)), quantized.run(copies_of(inputs)));
  return comparison.result();
}

std::ostream& operator<<(std::ostream& out, const ActivationComparison& comparison) {
  out << "output " << decibels(comparison.output.sqnr_db) << ", largest difference " << comparison.output.largest
      << " of " << comparison.output.magnitude << ", " << comparison.samples
      << (comparison.samples == 1 ? " sample\n" : " samples\n");
  for (const ActivationDifference& each : comparison.nodes)
    out << decibels(each.sqnr_db) << "  " << each.node << "  " << each.op << "\n";
  return out;
}

std::string to_json(const ActivationComparison& comparison) {
  // Infinite ratios are no JSON numbers.
  const auto entry = [](const ActivationDifference& each) {
    nlohmann::ordered_json made = {{"node", each.node}, {"op", each.op}};
    made["sqnr_db"] = std::isfinite(each.sqnr_db) ? nlohmann::ordered_json(each.sqnr_db) : nlohmann::ordered_json();
    made["largest_difference"] = each.largest;
    made["magnitude"] = each.magnitude;
    return made;
  };
  nlohmann::ordered_json all = {{"samples", comparison.samples},
                                {"output", entry(comparison.output)},
                                {"agreement", comparison.agreement},
                                {"nodes", nlohmann::ordered_json::array()}};
  for (const ActivationDifference& each : comparison.nodes) all["nodes"].push_back(entry(each));
  return all.dump(2);
}

}  // namespace fx
