#include <fxgraph/rewriter/quantize/qnnpack_limits.h>

#include <algorithm>
#include <cmath>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

namespace {

// Of the scales of a sum: in float32, as QNNPACK computes them.
constexpr float kLeastRatio = 0x1p-14F, kMostRatio = 0x1p8F;

bool has_normal_scale(const Node* value) {
  const auto grid = grid_of(*value);
  return !grid || std::isnormal(static_cast<float>(grid->scale));
}

std::string sum_fault(const Node& kernel) {
  const auto sum = grid_of(kernel);
  for (const Node* operand : kernel.all_input_nodes()) {
    const auto grid = grid_of(*operand);
    if (!grid || !sum) continue;
    const float ratio = static_cast<float>(grid->scale) / static_cast<float>(sum->scale);
    if (!(ratio >= kLeastRatio && ratio < kMostRatio))
      return "qnnpack adds only where the scales of operand and sum have a ratio in [2^-14, 2^8)";
  }
  return {};
}

std::string clamp_fault(const Call& kernel, const char* low, const char* high) {
  const auto least = literal_number(kernel.argument(low)), most = literal_number(kernel.argument(high));
  return least && most && *least > *most ? "qnnpack clamps only where the lower bound is below the upper" : "";
}

std::string pool_fault(const Call& kernel) {
  const Argument* window = kernel.argument("kernel_size");
  if (!window) return {};
  const auto is_one = [](const Argument& each) { return each.is_int() && each.as_int() == 1; };
  const bool single =
      window->is_list() || window->is_tuple() ? std::ranges::all_of(window->elements(), is_one) : is_one(*window);
  return single ? "qnnpack has no pooling over one element" : "";
}

}  // namespace

std::string qnnpack_fault(const Node& kernel) {
  if (!has_normal_scale(&kernel) || !std::ranges::all_of(kernel.all_input_nodes(), has_normal_scale))
    return "qnnpack wants scales that are normal numbers";
  const Call call = call_of(kernel);
  if (!call) return {};
  const std::string_view packet = packet_of(call.schema().target.view());
  if (packet == "quantized::add" || packet == "quantized::add_relu") return sum_fault(kernel);
  if (packet == "aten::clamp") return clamp_fault(call, "min", "max");
  if (packet == "aten::hardtanh") return clamp_fault(call, "min_val", "max_val");
  for (const char* pool : {"aten::max_pool1d", "aten::max_pool2d", "aten::avg_pool1d", "aten::avg_pool2d"}) {
    if (packet == pool) return pool_fault(call);
  }
  return {};
}

}  // namespace fx::quantize
