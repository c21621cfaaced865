#include <fxgraph/rewriter/quantize/backend_table.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>

namespace fx::quantize {

int Site::rank(const Shapes& shapes, const Node& node) {
  const TensorInfo* info = shapes[node].tensor();
  return info ? static_cast<int>(info->sizes.size()) : -1;
}

int Site::input_rank() const {
  const Argument* input = call.argument(0);
  const Node* value = input ? input->node_or_null() : nullptr;
  return value ? rank(shapes, *value) : -1;
}

namespace {

std::string plain_sum(const Site& site) {
  return literal_number(site.call.argument("alpha")) == 1 ? "" : "the kernel adds without alpha";
}

std::string equal_ranks(const Site& site) {
  const Argument* other = site.call.argument(1);
  const Node* value = other ? other->node_or_null() : nullptr;
  const int rank = site.input_rank();
  if (!value || rank < 2 || Site::rank(site.shapes, *value) != rank)
    return "the kernel wants operands of one rank of at least 2";
  return {};
}

std::string same_type(const Site& site) {
  const Argument* type = site.call.argument("dtype");
  return !type || type->is_none() ? "" : "it changes the type";
}

std::string of_batch(const Site& site) {
  if (site.input_rank() < 3) return "the kernel wants a batch of at least one dimension";
  const Argument* statistics = site.call.argument("use_input_stats");
  return statistics && statistics->is_bool() && statistics->as_bool() ? ""
                                                                      : "the kernel knows the input's statistics only";
}

std::string running_statistics(const Site& site) {
  const Argument* training = site.call.argument("training");
  if (!training || !training->is_bool() || training->as_bool()) return "it normalises by the batch's statistics";
  const int rank = site.input_rank();
  return rank == 4 || rank == 5 ? "" : "there are kernels for images and volumes only";
}

std::string by_number(const Site& site) {
  const Argument* rounding = site.call.argument("rounding_mode");
  if (rounding && !rounding->is_none()) return "it rounds the quotient";
  if (!literal_number(site.call.argument(1))) return "its operand is computed";
  return std::isfinite(number_of(site.call)) ? "" : "its operand is not finite";
}

std::string plus_number(const Site& site) {
  const std::string obstacle = plain_sum(site);
  return obstacle.empty() ? by_number(site) : obstacle;
}

std::string constant_or_reflected(const Site& site) {
  const Argument* mode = site.call.argument("mode");
  const bool has_kernel =
      !mode || !mode->is_string() || mode->as_string() == "constant" || mode->as_string() == "reflect";
  return has_kernel ? "" : "there is no kernel for the padding mode " + std::string(mode->as_string());
}

std::string dense_unpadded(const Site& site) {
  const Argument* divisor = site.call.argument("divisor_override");
  return !divisor || divisor->is_none() ? "" : "the kernel has no divisor_override";
}

constexpr Role W = Role::weighted, E = Role::elementwise, O = Role::own, F = Role::fixed, N = Role::by_number,
               S = Role::share;

constexpr std::array kRows = std::to_array<Row>({
    {.packet = "aten::conv1d",
     .role = W,
     .kernel = "quantized::conv1d",
     .kernel_relu = "quantized::conv1d_relu",
     .prepack = "quantized::conv1d_prepack",
     .rank = 3},
    {.packet = "aten::conv2d",
     .role = W,
     .kernel = "quantized::conv2d.new",
     .kernel_relu = "quantized::conv2d_relu.new",
     .prepack = "quantized::conv2d_prepack",
     .rank = 4},
    {.packet = "aten::conv3d",
     .role = W,
     .kernel = "quantized::conv3d.new",
     .kernel_relu = "quantized::conv3d_relu.new",
     .prepack = "quantized::conv3d_prepack",
     .rank = 5},
    {.packet = "aten::conv_transpose1d",
     .role = W,
     .kernel = "quantized::conv_transpose1d",
     .prepack = "quantized::conv_transpose1d_prepack",
     .rank = 3},
    {.packet = "aten::conv_transpose2d",
     .role = W,
     .kernel = "quantized::conv_transpose2d",
     .prepack = "quantized::conv_transpose2d_prepack",
     .rank = 4},
    {.packet = "aten::conv_transpose3d",
     .role = W,
     .kernel = "quantized::conv_transpose3d",
     .prepack = "quantized::conv_transpose3d_prepack",
     .rank = 5},
    {.packet = "aten::linear",
     .role = W,
     .kernel = "quantized::linear",
     .kernel_relu = "quantized::linear_relu",
     .prepack = "quantized::linear_prepack",
     .kernel_dynamic = "quantized::linear_dynamic",
     .kernel_relu_dynamic = "quantized::linear_relu_dynamic"},

    {.packet = "aten::add",
     .role = E,
     .kernel = "quantized::add",
     .kernel_relu = "quantized::add_relu",
     .obstacle = plain_sum},
    {.packet = "aten::mul", .role = E, .kernel = "quantized::mul", .kernel_relu = "quantized::mul_relu"},
    {.packet = "aten::matmul", .role = E, .kernel = "quantized::matmul", .obstacle = equal_ranks},
    {.packet = "aten::prelu", .role = E, .kernel = "quantized::prelu"},
    {.packet = "aten::cat", .role = Role::concat, .kernel = "quantized::cat"},

    {.packet = "aten::hardswish", .role = O, .kernel = "quantized::hardswish"},
    {.packet = "aten::elu", .role = O, .kernel = "quantized::elu"},
    {.packet = "aten::celu", .role = O, .kernel = "quantized::celu"},
    {.packet = "aten::leaky_relu", .role = O, .kernel = "quantized::leaky_relu"},
    {.packet = "aten::layer_norm", .role = O, .kernel = "quantized::layer_norm"},
    {.packet = "aten::group_norm", .role = O, .kernel = "quantized::group_norm"},
    {.packet = "aten::instance_norm", .role = O, .kernel = "quantized::instance_norm", .obstacle = of_batch},
    {.packet = "aten::batch_norm",
     .role = O,
     .kernel = "quantized::batch_norm",
     .kernel_relu = "quantized::batch_norm_relu",
     .obstacle = running_statistics},

    {.packet = "aten::sigmoid", .role = F, .kernel = "quantized::sigmoid", .scale = 1.0 / 256},
    {.packet = "aten::hardsigmoid", .role = F, .scale = 1.0 / 256},
    {.packet = "aten::tanh", .role = F, .scale = 2.0 / 256, .zero_point = 128},
    {.packet = "aten::softmax", .role = F, .kernel = "quantized::softmax", .scale = 1.0 / 256, .obstacle = same_type},

    {.packet = "aten::mul.Scalar", .role = N, .kernel = "quantized::mul.Scalar", .obstacle = by_number},
    {.packet = "aten::div.Scalar", .role = N, .kernel = "quantized::mul.Scalar", .obstacle = by_number},
    {.packet = "aten::add.Scalar", .role = N, .kernel = "quantized::add.Scalar", .obstacle = plus_number},
    {.packet = "aten::sub.Scalar", .role = N, .kernel = "quantized::add.Scalar", .obstacle = plus_number},

    {.packet = "aten::relu", .role = S},
    {.packet = "aten::relu6", .role = S},
    {.packet = "aten::hardtanh", .role = S},
    {.packet = "aten::clamp", .role = S},
    {.packet = "aten::max_pool1d", .role = S},
    {.packet = "aten::max_pool2d", .role = S},
    {.packet = "aten::avg_pool1d", .role = S},
    {.packet = "aten::avg_pool2d", .role = S, .obstacle = dense_unpadded},
    {.packet = "aten::avg_pool3d", .role = S, .obstacle = dense_unpadded},
    {.packet = "aten::adaptive_avg_pool1d", .role = S},
    {.packet = "aten::adaptive_avg_pool2d", .role = S},
    {.packet = "aten::adaptive_avg_pool3d", .role = S},
    {.packet = "aten::mean", .role = S, .obstacle = same_type},
    {.packet = "aten::upsample_nearest1d", .role = S},
    {.packet = "aten::upsample_nearest2d", .role = S},
    {.packet = "aten::upsample_nearest3d", .role = S},
    {.packet = "aten::upsample_bilinear2d", .role = S},
    {.packet = "aten::constant_pad_nd", .role = S},
    {.packet = "aten::pad", .role = S, .obstacle = constant_or_reflected},
    {.packet = "aten::reflection_pad1d", .role = S},
    {.packet = "aten::reflection_pad2d", .role = S},
    {.packet = "aten::flatten", .role = S},
    {.packet = "aten::reshape", .role = S},
    {.packet = "aten::view", .role = S},
    {.packet = "aten::permute", .role = S},
    {.packet = "aten::transpose", .role = S},
    {.packet = "aten::t", .role = S},
    {.packet = "aten::movedim", .role = S},
    {.packet = "aten::unflatten", .role = S},
    {.packet = "aten::squeeze", .role = S},
    {.packet = "aten::unsqueeze", .role = S},
    {.packet = "aten::contiguous", .role = S},
    {.packet = "aten::detach", .role = S},
    {.packet = "aten::clone", .role = S},
    {.packet = "aten::expand", .role = S},
    {.packet = "aten::repeat", .role = S},
    {.packet = "aten::repeat_interleave", .role = S},
    {.packet = "aten::flip", .role = S},
    {.packet = "aten::slice", .role = S},
    {.packet = "aten::select", .role = S},
    {.packet = "aten::narrow", .role = S},
    {.packet = "aten::index_select", .role = S},
    {.packet = "aten::pixel_shuffle", .role = S},
    {.packet = "aten::channel_shuffle", .role = S},
    {.packet = "aten::chunk", .role = S},
    {.packet = "aten::split", .role = S},
    {.packet = "aten::split_with_sizes", .role = S},
    {.packet = "aten::unbind", .role = S},
    {.packet = python::kGetItemName, .role = S},
    {.packet = "aten::stack", .role = Role::share_all},
});

// Modules that become these operators.
constexpr std::array kModuleTypes = std::to_array<std::string_view>({"Conv1d",
                                                                     "Conv2d",
                                                                     "Conv3d",
                                                                     "ConvTranspose1d",
                                                                     "ConvTranspose2d",
                                                                     "ConvTranspose3d",
                                                                     "Linear",
                                                                     "BatchNorm1d",
                                                                     "BatchNorm2d",
                                                                     "BatchNorm3d",
                                                                     "LayerNorm",
                                                                     "GroupNorm",
                                                                     "InstanceNorm1d",
                                                                     "InstanceNorm2d",
                                                                     "InstanceNorm3d",
                                                                     "ReLU",
                                                                     "ReLU6",
                                                                     "Hardtanh",
                                                                     "Hardswish",
                                                                     "Hardsigmoid",
                                                                     "Sigmoid",
                                                                     "Tanh",
                                                                     "Softmax",
                                                                     "ELU",
                                                                     "CELU",
                                                                     "PReLU",
                                                                     "LeakyReLU",
                                                                     "MaxPool1d",
                                                                     "MaxPool2d",
                                                                     "AvgPool1d",
                                                                     "AvgPool2d",
                                                                     "AvgPool3d",
                                                                     "AdaptiveAvgPool1d",
                                                                     "AdaptiveAvgPool2d",
                                                                     "AdaptiveAvgPool3d",
                                                                     "Upsample",
                                                                     "Flatten",
                                                                     "Embedding",
                                                                     "EmbeddingBag",
                                                                     "LSTM",
                                                                     "GRU",
                                                                     "LSTMCell",
                                                                     "GRUCell",
                                                                     "PixelShuffle",
                                                                     "ChannelShuffle"});

}  // namespace

std::span<const Row> backend_table() { return kRows; }

const Row* row_of(std::string_view target) {
  static const auto& index = *[] {
    auto* made = new std::unordered_map<std::string_view, const Row*>;
    for (const Row& row : kRows) made->emplace(row.packet, &row);
    return made;
  }();
  // A row of one overload goes before one of all.
  for (const std::string_view name : {target, packet_of(target)}) {
    if (const auto found = index.find(name); found != index.end()) return found->second;
  }
  return nullptr;
}

bool is_known_type(std::string_view type) {
  return std::ranges::find(kModuleTypes, type) != kModuleTypes.end() || row_of(type) || type == "aten::embedding" ||
         type == "aten::embedding_bag" || type == "aten::lstm" || type == "aten::gru" || type == "aten::lstm_cell" ||
         type == "aten::gru_cell";
}

double number_of(const Call& call) {
  const double number = call.argument("other")->as_float();
  const std::string_view packet = packet_of(call.schema().target.view());
  return packet == "aten::div" ? 1 / number : packet == "aten::sub" ? -number : number;
}

std::optional<double> literal_number(const Argument* argument) {
  return argument && argument->is_number() ? std::optional(argument->as_float()) : std::nullopt;
}

Bounds bounds_of(const Node& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Call call = call_of(node);
  if (!call) return {};
  const std::string_view packet = packet_of(call.schema().target.view());
  const auto number = [&](std::string_view name, double otherwise) {
    const Argument* value = call.argument(name);
    return !value || value->is_none() ? otherwise : literal_number(value);
  };
  std::optional<double> low, high;
  if (packet == "aten::relu") {
    low = 0, high = kInfinity;
  } else if (packet == "aten::relu6") {
    low = 0, high = 6;
  } else if (packet == "aten::hardtanh") {
    low = number("min_val", -1), high = number("max_val", 1);
  } else if (packet == "aten::clamp") {
    low = number("min", -kInfinity), high = number("max", kInfinity);
  }
  if (!low || !high || *low > 0 || *high < 0 || (*low == -kInfinity && *high == kInfinity)) return {};
  return {true, *low, *high};
}

}  // namespace fx::quantize
