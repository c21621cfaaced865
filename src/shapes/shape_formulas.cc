#include <fxgraph/shapes/shape_formulas.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include <fxgraph/shapes/formula_rows.h>

namespace fx::internal {
namespace {

using c10::IValue;

// Convolutions make contiguous what is not, unless it lies by channels.
bool is_made_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_meta() && tensor.layout() == at::kStrided &&
         (tensor.is_contiguous() ||
          (tensor.suggest_memory_format() == at::MemoryFormat::Contiguous && tensor.is_non_overlapping_and_dense()));
}

struct Convolution {
  at::Tensor input, weight;
  Ints stride, padding, dilation;
  std::int64_t groups = 1;

  // What convolution and its transpose ask alike, for batches.
  bool read(const IValue* arguments, std::size_t dilation_at, std::size_t groups_at, std::int64_t channels_dim) {
    if (!arguments[0].isTensor() || !arguments[1].isTensor() || !arguments[groups_at].isInt()) return false;
    input = arguments[0].toTensor();
    weight = arguments[1].toTensor();
    groups = arguments[groups_at].toInt();
    if (!is_made_plain(input) || !is_plain(weight) || input.dim() < 3 || input.dim() != weight.dim() || groups < 1 ||
        (input.numel() == 0 && input.size(0) != 0) || weight.numel() == 0)
      return false;
    if (input.numel() == 0 && input.scalar_type() != weight.scalar_type()) return false;
    // No kernel takes two types; LibTorch's says so when it has unfolded the input.
    TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "expected scalar type ", input.scalar_type(),
                " but found ", weight.scalar_type());
    const auto count = static_cast<std::size_t>(input.dim() - 2);
    if (!per_dimension(arguments[3], count, stride) || !per_dimension(arguments[4], count, padding) ||
        !per_dimension(arguments[dilation_at], count, dilation))
      return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (stride[i] < 1 || padding[i] < 0 || dilation[i] < 1) return false;
    }
    const std::int64_t channels = channels_dim == 1 ? weight.size(1) * groups : weight.size(0);
    if (input.size(1) != channels || weight.size(0) % groups != 0) return false;
    if (arguments[2].isNone()) return true;
    const at::Tensor bias = arguments[2].toTensor();
    const std::int64_t outputs = channels_dim == 1 ? weight.size(0) : weight.size(1) * groups;
    return !bias.defined() || (bias.dim() == 1 && bias.size(0) == outputs && bias.scalar_type() == input.scalar_type());
  }
};

// (input, weight, bias, stride, padding, dilation, groups)
at::Tensor convolution(const IValue* arguments) {
  Convolution c;
  if (!c.read(arguments, 5, 6, 1)) return {};
  Ints sizes = {c.input.size(0), c.weight.size(0)};
  for (std::size_t i = 0; i < c.stride.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i) + 2;
    const std::int64_t room = c.input.size(dim) + 2 * c.padding[i] - c.dilation[i] * (c.weight.size(dim) - 1) - 1;
    if (room < 0) return {};
    sizes.push_back(room / c.stride[i] + 1);
  }
  return contiguous_like(c.input, sizes);
}

// (input, weight, bias, stride, "same" or "valid", dilation, groups)
at::Tensor convolution_by_words(const IValue* arguments) {
  if (!arguments[4].isString() || !arguments[0].isTensor() || arguments[0].toTensor().dim() < 3) return {};
  std::vector<IValue> numbers(arguments, arguments + 7);
  numbers[4] = Ints(static_cast<std::size_t>(arguments[0].toTensor().dim() - 2), 0);
  at::Tensor valid = convolution(numbers.data());
  if (arguments[4].toStringRef() == "valid") return valid;
  Convolution c;
  if (arguments[4].toStringRef() != "same" || !c.read(numbers.data(), 5, 6, 1)) return {};
  Ints sizes = c.input.sizes().vec();
  sizes[1] = c.weight.size(0);
  for (std::size_t i = 0; i < c.stride.size(); ++i) {
    if (c.stride[i] != 1 || sizes[i + 2] == 0) return {};
  }
  return contiguous_like(c.input, sizes);
}

// (input, weight, bias, stride, padding, output_padding, groups, dilation)
at::Tensor transposed_convolution(const IValue* arguments) {
  Convolution c;
  Ints more;
  if (!c.read(arguments, 7, 6, 0) || !per_dimension(arguments[5], c.stride.size(), more)) return {};
  Ints sizes = {c.input.size(0), c.weight.size(1) * c.groups};
  for (std::size_t i = 0; i < c.stride.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i) + 2;
    if (more[i] < 0 || (more[i] >= c.stride[i] && more[i] >= c.dilation[i])) return {};
    sizes.push_back((c.input.size(dim) - 1) * c.stride[i] - 2 * c.padding[i] +
                    c.dilation[i] * (c.weight.size(dim) - 1) + more[i] + 1);
    if (sizes.back() < 1) return {};
  }
  return contiguous_like(c.input, sizes);
}

// (input, weight?, bias?, running_mean?, running_var?, training, …)
at::Tensor batch_norm(const IValue* arguments) {
  if (!arguments[0].isTensor()) return {};
  const at::Tensor input = arguments[0].toTensor();
  const bool is_empty = input.defined() && input.numel() == 0;
  if (!is_plain(input) || input.dim() < 2 || (is_empty && (input.size(0) != 0 || arguments[5].toBool()))) return {};
  const auto is_given = [&](std::size_t i) { return arguments[i].isTensor() && arguments[i].toTensor().defined(); };
  if (is_given(3) != is_given(4)) return {};  // newer releases refuse it
  for (std::size_t i = 1; i < 5; ++i) {
    if (!is_given(i)) {
      if (i > 2 && !arguments[5].toBool()) return {};
      continue;
    }
    const at::Tensor each = arguments[i].toTensor();
    if (each.dim() != 1 || each.size(0) != input.size(1) || each.scalar_type() != input.scalar_type()) return {};
  }
  return contiguous_like(input, input.sizes().vec());
}

// (input, groups, weight?, bias?, …)
at::Tensor group_norm(const IValue* arguments) {
  if (!is_plain_real(arguments[0]) || !arguments[1].isInt()) return {};
  const at::Tensor input = arguments[0].toTensor();
  const std::int64_t groups = arguments[1].toInt();
  if (input.dim() < 2 || input.numel() == 0 || groups < 1 || input.size(1) % groups != 0 ||
      !is_vector_for(arguments[2], input, input.size(1)) || !is_vector_for(arguments[3], input, input.size(1)))
    return {};
  return contiguous_like(input, input.sizes().vec());
}

// (input, weight?, bias?, running_mean?, running_var?, by the input's own statistics, …)
at::Tensor instance_norm(const IValue* arguments) {
  if (!is_plain_real(arguments[0]) || !arguments[5].isBool()) return {};
  const at::Tensor input = arguments[0].toTensor();
  if (input.dim() < 3 || input.numel() == 0) return {};
  for (std::size_t i = 1; i < 5; ++i) {
    const bool given = !arguments[i].isNone() && arguments[i].toTensor().defined();
    if (!is_vector_for(arguments[i], input, input.size(1)) || (i > 2 && !given && !arguments[5].toBool())) return {};
  }
  if (arguments[3].isNone() != arguments[4].isNone()) return {};
  return contiguous_like(input, input.sizes().vec());
}

// What pooling windows leave of each dimension; nothing for what the operator refuses.
struct Pooling {
  Ints window, stride, padding, dilation;
  bool round_up = false;
  bool window_fits = false;  // into the input itself, without padding

  at::Tensor of(const at::Tensor& input) const {
    const std::size_t count = window.size();
    const auto rank = static_cast<std::size_t>(input.dim());
    if ((rank != count + 1 && rank != count + 2) || (input.numel() == 0 && (rank == count + 1 || input.size(0) != 0)))
      return {};
    Ints sizes(input.sizes().begin(), input.sizes().end());
    for (std::size_t i = 0; i < count; ++i) {
      if (window[i] < 1 || stride[i] < 1 || dilation[i] < 1 || padding[i] < 0 || 2 * padding[i] > window[i]) return {};
      std::int64_t& size = sizes[rank - count + i];
      const std::int64_t room = size + 2 * padding[i] - dilation[i] * (window[i] - 1) - 1;
      if (room < 0 || (window_fits && size < window[i])) return {};
      const std::int64_t before = size;
      size = (room + (round_up ? stride[i] - 1 : 0)) / stride[i] + 1;
      // The last window begins inside of the input, or its padding before.
      if (round_up && (size - 1) * stride[i] >= before + padding[i]) --size;
    }
    return contiguous_like(input, sizes);
  }
  // Without a stride it is the window.
  bool read(const IValue* arguments, std::size_t count) {
    if (!per_dimension(arguments[1], count, window) || !arguments[2].isIntList() ||
        !per_dimension(arguments[3], count, padding))
      return false;
    dilation.assign(count, 1);
    if (!arguments[2].toIntVector().empty()) return per_dimension(arguments[2], count, stride);
    stride = window;
    return true;
  }
};

// (input, …): each element by itself.
at::Tensor pointwise(const IValue* arguments) {
  if (!is_plain_real(arguments[0])) return {};
  return contiguous_like(arguments[0].toTensor(), arguments[0].toTensor().sizes().vec());
}
at::Tensor pointwise_in_place(const IValue* arguments) {
  return is_plain_real(arguments[0]) ? arguments[0].toTensor() : at::Tensor();
}

// (input, window, stride, padding, dilation, round up)
template <std::size_t count>
at::Tensor max_pool(const IValue* arguments) {
  Pooling pooling;
  if (!is_plain_real(arguments[0]) || !pooling.read(arguments, count) ||
      !per_dimension(arguments[4], count, pooling.dilation) || !arguments[5].isBool())
    return {};
  pooling.round_up = arguments[5].toBool();
  return pooling.of(arguments[0].toTensor());
}

// (input, window, stride, padding, round up, count padding, divisor?)
template <std::size_t count>
at::Tensor average_pool(const IValue* arguments) {
  Pooling pooling;
  if (!is_plain_real(arguments[0]) || !pooling.read(arguments, count) || !arguments[4].isBool() ||
      !arguments[6].isNone())
    return {};
  pooling.round_up = arguments[4].toBool();
  pooling.window_fits = count == 3;
  return pooling.of(arguments[0].toTensor());
}

// (input, output size)
template <std::size_t count>
at::Tensor adaptive_average_pool(const IValue* arguments) {
  Ints wanted;
  if (!is_plain_real(arguments[0]) || !arguments[1].isIntList() || arguments[1].toIntVector().size() != count)
    return {};
  wanted = arguments[1].toIntVector();
  const at::Tensor input = arguments[0].toTensor();
  const auto rank = static_cast<std::size_t>(input.dim());
  if ((rank != count + 1 && rank != count + 2) || (input.numel() == 0 && (rank == count + 1 || input.size(0) != 0)))
    return {};
  Ints sizes(input.sizes().begin(), input.sizes().end());
  for (std::size_t i = 0; i < count; ++i) {
    if (wanted[i] < 1 || (input.numel() == 0 && input.size(static_cast<std::int64_t>(rank - count + i)) == 0))
      return {};
    sizes[rank - count + i] = wanted[i];
  }
  return contiguous_like(input, sizes);
}

// (weight, indices, padding index, scale gradients, sparse)
at::Tensor embedding(const IValue* arguments) {
  if (!is_plain_real(arguments[0]) || !arguments[1].isTensor()) return {};
  const at::Tensor weight = arguments[0].toTensor(), indices = arguments[1].toTensor();
  if (!indices.defined() || !indices.is_meta() || indices.layout() != at::kStrided || weight.dim() != 2 ||
      weight.numel() == 0)
    return {};
  TORCH_CHECK(
      indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
      "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
      indices.scalar_type(), " instead (while checking arguments for embedding)");
  Ints sizes = indices.sizes().vec();
  sizes.push_back(weight.size(1));
  return contiguous_like(weight, sizes);
}

// (input, normalized shape, weight?, bias?, …)
at::Tensor layer_norm(const IValue* arguments) {
  if (!is_plain_real(arguments[0]) || !arguments[1].isIntList()) return {};
  const at::Tensor input = arguments[0].toTensor();
  const Ints shape = arguments[1].toIntVector();
  const at::IntArrayRef sizes = input.sizes();
  if (shape.empty() || shape.size() > sizes.size() || std::find(shape.begin(), shape.end(), 0) != shape.end() ||
      !std::equal(shape.begin(), shape.end(), sizes.end() - static_cast<std::ptrdiff_t>(shape.size())))
    return {};
  for (const std::size_t i : {2, 3}) {
    if (arguments[i].isNone() || !arguments[i].toTensor().defined()) continue;
    const at::Tensor each = arguments[i].toTensor();
    if (each.sizes() != at::IntArrayRef(shape) || each.scalar_type() != input.scalar_type()) return {};
  }
  return contiguous_like(input, sizes.vec());
}

constexpr FormulaRow kPlainRows[] = {
    {"aten::conv1d", 7, convolution},
    {"aten::conv2d", 7, convolution},
    {"aten::conv3d", 7, convolution},
    {"aten::conv_transpose1d", 8, transposed_convolution},
    {"aten::conv_transpose2d.input", 8, transposed_convolution},
    {"aten::conv_transpose3d.input", 8, transposed_convolution},
    {"aten::batch_norm", 9, batch_norm},
    {"aten::relu", 1, pointwise},
    {"aten::relu_", 1, pointwise_in_place},
    {"aten::hardtanh", 3, pointwise},
    {"aten::hardtanh_", 3, pointwise_in_place},
    {"aten::hardswish", 1, pointwise},
    {"aten::hardswish_", 1, pointwise_in_place},
    {"aten::embedding", 5, embedding},
    {"aten::layer_norm", 6, layer_norm},
    {"aten::max_pool1d", 6, max_pool<1>},
    {"aten::max_pool2d", 6, max_pool<2>},
    {"fxgraph::max_pool2d", 6, max_pool<2>},
    {"aten::max_pool3d", 6, max_pool<3>},
    {"aten::avg_pool2d", 7, average_pool<2>},
    {"aten::avg_pool3d", 7, average_pool<3>},
    {"aten::adaptive_avg_pool2d", 2, adaptive_average_pool<2>},
    {"aten::adaptive_avg_pool3d", 2, adaptive_average_pool<3>},
    {"aten::conv1d.padding", 7, convolution_by_words},
    {"aten::conv2d.padding", 7, convolution_by_words},
    {"aten::conv3d.padding", 7, convolution_by_words},
    {"aten::group_norm", 6, group_norm},
    {"aten::instance_norm", 9, instance_norm},
    {"aten::abs", 1, pointwise},
    {"aten::abs_", 1, pointwise_in_place},
    {"aten::relu6", 1, pointwise},
    {"aten::relu6_", 1, pointwise_in_place},
    {"aten::log_sigmoid", 1, pointwise},
};

}  // namespace

std::vector<at::Tensor> shapes_by_formula(Symbol target, const IValue* arguments, std::size_t count) {
  static const auto rows = [] {
    std::unordered_map<Symbol, const FormulaRow*> result;
    const std::span<const FormulaRow> tables[] = {kPlainRows, moving_formulas(), recurrent_formulas()};
    for (const std::span<const FormulaRow>& table : tables) {
      for (const FormulaRow& row : table) result.emplace(Symbol(row.target), &row);
    }
    return result;
  }();
  const auto found = rows.find(target);
  if (found == rows.end() || found->second->count != count) return {};
  const FormulaRow& row = *found->second;
  if (row.several) return row.several(arguments);
  at::Tensor shape = row.one(arguments);
  return shape.defined() ? std::vector<at::Tensor>{std::move(shape)} : std::vector<at::Tensor>();
}

}  // namespace fx::internal
