#include <fxgraph/trace/shape_formulas.h>

#include <ATen/ops/empty.h>

#include <unordered_map>
#include <vector>

namespace fx::internal {
namespace {

using c10::IValue;
using Ints = std::vector<std::int64_t>;

// One number stands for all dimensions.
bool per_dimension(const IValue& value, std::size_t count, Ints& out) {
  if (!value.isIntList()) return false;
  out = value.toIntVector();
  if (out.size() == 1) out.resize(count, out[0]);
  return out.size() == count;
}

bool is_plain(const at::Tensor& tensor) { return tensor.defined() && tensor.is_meta() && tensor.is_contiguous(); }

at::Tensor contiguous_like(const at::Tensor& input, const Ints& sizes) {
  return at::empty(sizes, at::TensorOptions(input.scalar_type()).device(at::kMeta));
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
    if (!is_plain(input) || !is_plain(weight) || input.dim() < 3 || input.dim() != weight.dim() || groups < 1 ||
        input.numel() == 0 || weight.numel() == 0 || input.scalar_type() != weight.scalar_type())
      return false;
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
  if (!is_plain(input) || input.dim() < 2 || input.numel() == 0) return {};
  for (std::size_t i = 1; i < 5; ++i) {
    if (arguments[i].isNone() || !arguments[i].toTensor().defined()) {
      if (i > 2 && !arguments[5].toBool()) return {};
      continue;
    }
    const at::Tensor each = arguments[i].toTensor();
    if (each.dim() != 1 || each.size(0) != input.size(1) || each.scalar_type() != input.scalar_type()) return {};
  }
  return contiguous_like(input, input.sizes().vec());
}

}  // namespace

ShapeFormula shape_formula(Symbol target) {
  static const std::unordered_map<Symbol, ShapeFormula> formulas = {
      {"aten::conv1d", convolution},
      {"aten::conv2d", convolution},
      {"aten::conv3d", convolution},
      {"aten::conv_transpose1d", transposed_convolution},
      {"aten::conv_transpose2d.input", transposed_convolution},
      {"aten::conv_transpose3d.input", transposed_convolution},
      {"aten::batch_norm", batch_norm},
  };
  const auto row = formulas.find(target);
  return row == formulas.end() ? nullptr : row->second;
}

}  // namespace fx::internal
