#include <fxgraph/rewriter/quantize/qnnpack_limits.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

namespace {

// Of the scales of a sum: in float32, as QNNPACK computes them.
constexpr float kLeastRatio = 0x1p-14F, kMostRatio = 0x1p8F;

bool is_normal(double scale) { return std::isnormal(static_cast<float>(scale)); }

std::optional<double> number(const Node& kernel, std::string_view name) {
  const Argument* value = bound_argument(kernel, name);
  return value && value->is_number() ? std::optional(value->as_float()) : std::nullopt;
}

/// The scale that the kernel is told to give its result.
std::optional<double> result_scale(const Node& kernel) {
  const auto prefixed = number(kernel, "output_scale");
  return prefixed ? prefixed : number(kernel, "scale");
}

std::string sum_fault(const Node& kernel) {
  const auto sum = result_scale(kernel);
  for (std::size_t i = 0; i < 2 && sum && i < kernel.args().size(); ++i) {
    const Node* operand = kernel.arg(i).node_or_null();
    const auto grid = operand ? grid_of(*operand) : std::nullopt;
    if (!grid) continue;
    const float ratio = static_cast<float>(grid->scale) / static_cast<float>(*sum);
    if (!(ratio >= kLeastRatio && ratio < kMostRatio))
      return "qnnpack adds only where the scales of operand and sum have a ratio in [2^-14, 2^8)";
  }
  return {};
}

std::string clamp_fault(const Node& kernel, const char* low, const char* high) {
  const auto least = number(kernel, low), most = number(kernel, high);
  return least && most && *least > *most ? "qnnpack clamps only where the lower bound is below the upper" : "";
}

std::string pool_fault(const Node& kernel) {
  const Argument* window = bound_argument(kernel, "kernel_size");
  if (!window) return {};
  const auto is_one = [](const Argument& each) { return each.is_int() && each.as_int() == 1; };
  const bool single =
      window->is_list() || window->is_tuple() ? std::ranges::all_of(window->elements(), is_one) : is_one(*window);
  return single ? "qnnpack has no pooling over one element" : "";
}

}  // namespace

std::string qnnpack_fault(const Node& kernel) {
  const std::string_view packet = packet_of(kernel.target().view());
  for (const Node* input : kernel.all_input_nodes()) {
    const auto grid = grid_of(*input);
    if (grid && !is_normal(grid->scale)) return "qnnpack wants scales that are normal numbers";
  }
  if (const auto scale = result_scale(kernel); scale && !is_normal(*scale))
    return "qnnpack wants scales that are normal numbers";
  if (packet == "quantized::add" || packet == "quantized::add_relu") return sum_fault(kernel);
  if (packet == "aten::clamp") return clamp_fault(kernel, "min", "max");
  if (packet == "aten::hardtanh") return clamp_fault(kernel, "min_val", "max_val");
  for (const char* pool : {"aten::max_pool1d", "aten::max_pool2d", "aten::avg_pool1d", "aten::avg_pool2d"}) {
    if (packet == pool) return pool_fault(kernel);
  }
  return {};
}

}  // namespace fx::quantize
