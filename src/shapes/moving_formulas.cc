#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include <fxgraph/shapes/formula_rows.h>

namespace fx::internal {
namespace {

using c10::IValue;

// Dimensions of a tensor, each at most once.
bool are_dims(const IValue& value, const at::Tensor& input, Ints& dims) {
  if (!value.isIntList()) return false;
  dims = value.toIntVector();
  for (std::int64_t& dim : dims) {
    if (dim < -input.dim() || dim >= input.dim()) return false;
    if (dim < 0) dim += input.dim();
  }
  Ints sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

// (input, before and after each dimension from the last on, how, value?)
at::Tensor pad(const IValue* arguments) {
  enum How : std::int64_t { reflect, replicate, circular, constant };
  if (!is_plain_real(arguments[0]) || !arguments[1].isIntList() || !arguments[2].isInt()) return {};
  const at::Tensor input = arguments[0].toTensor();
  const Ints by = arguments[1].toIntVector();
  const std::int64_t how = arguments[2].toInt();
  const auto rank = static_cast<std::size_t>(input.dim()), count = by.size() / 2;
  if (by.size() % 2 != 0 || count == 0 || count > rank || input.numel() == 0 || how < reflect || how > constant)
    return {};
  const bool is_usual = count <= 3 && (rank == count + 2 || (rank == count + 1 && how != circular));
  if (how != constant && (!is_usual || !arguments[3].isNone())) return {};
  Ints sizes = input.sizes().vec();
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t& size = sizes[rank - 1 - i];
    const std::int64_t most = std::max(by[2 * i], by[2 * i + 1]);
    if (by[2 * i] < 0 || by[2 * i + 1] < 0 || (how == reflect && most >= size) || (how == circular && most > size))
      return {};
    size += by[2 * i] + by[2 * i + 1];
  }
  return contiguous_like(input, sizes);
}

// (input, dimensions)
at::Tensor flip(const IValue* arguments) {
  Ints dims;
  if (!is_plain_real(arguments[0]) || !are_dims(arguments[1], arguments[0].toTensor(), dims)) return {};
  return contiguous_like(arguments[0].toTensor(), arguments[0].toTensor().sizes().vec());
}

// (input, by how much, dimensions)
at::Tensor roll(const IValue* arguments) {
  Ints dims;
  if (!is_plain_real(arguments[0]) || !are_dims(arguments[2], arguments[0].toTensor(), dims) ||
      !arguments[1].isIntList())
    return {};
  const std::size_t count = arguments[1].toIntVector().size();
  if (dims.empty() ? count != 1 : count != dims.size()) return {};
  return contiguous_like(arguments[0].toTensor(), arguments[0].toTensor().sizes().vec());
}

// (input, how many quarters, the two dimensions): an odd number gives a view of what was flipped, which is laid out as
// the input is.
at::Tensor rot90(const IValue* arguments) {
  Ints dims;
  if (!arguments[0].isTensor() || !arguments[1].isInt()) return {};
  const at::Tensor input = arguments[0].toTensor();
  if (!input.defined() || !input.is_meta() || !input.is_floating_point() || !input.is_non_overlapping_and_dense() ||
      input.numel() == 0 || !are_dims(arguments[2], input, dims) || dims.size() != 2)
    return {};
  const std::int64_t quarters = arguments[1].toInt() % 4;
  if (quarters == 0) return contiguous_like(input, input.sizes().vec());
  const at::Tensor flipped = at::empty_strided(input.sizes(), input.strides(), input.options());
  return quarters % 2 == 0 ? flipped : flipped.transpose(dims[0], dims[1]);
}

// (input, grid, how, padding, corners)
at::Tensor grid_sampler(const IValue* arguments) {
  if (!is_plain_real(arguments[0]) || !is_plain_real(arguments[1]) || !arguments[2].isInt()) return {};
  const at::Tensor input = arguments[0].toTensor(), grid = arguments[1].toTensor();
  constexpr std::int64_t kBicubic = 2;
  if ((input.dim() != 4 && input.dim() != 5) || grid.dim() != input.dim() || grid.size(0) != input.size(0) ||
      grid.size(-1) != input.dim() - 2 || input.scalar_type() != grid.scalar_type() || input.numel() == 0 ||
      grid.numel() == 0 || (arguments[2].toInt() == kBicubic && input.dim() != 4))
    return {};
  Ints sizes = {input.size(0), input.size(1)};
  for (std::int64_t i = 1; i + 1 < grid.dim(); ++i) sizes.push_back(grid.size(i));
  return contiguous_like(input, sizes);
}

// (condition, if so, else)
at::Tensor where(const IValue* arguments) {
  if (!arguments[0].isTensor() || !is_plain(arguments[0].toTensor()) || !is_plain_real(arguments[1]) ||
      !is_plain_real(arguments[2]))
    return {};
  const at::Tensor condition = arguments[0].toTensor(), a = arguments[1].toTensor(), b = arguments[2].toTensor();
  if (condition.scalar_type() != at::kBool || a.scalar_type() != b.scalar_type() || condition.dim() == 0 ||
      condition.sizes() != a.sizes() || a.sizes() != b.sizes())
    return {};
  return contiguous_like(a, a.sizes().vec());
}

// (number, elements, …): LibTorch's kernel for the meta device says that there is no result.
at::Tensor is_number_in(const IValue* arguments) {
  if (!arguments[1].isTensor() || !is_plain(arguments[1].toTensor())) return {};
  return at::empty(at::IntArrayRef(), at::TensorOptions(at::kBool).device(at::kMeta));
}

// (classes, how many there are): as many as there are in the data where that is no positive number.
at::Tensor one_hot(const IValue* arguments) {
  if (!arguments[0].isTensor() || !is_plain(arguments[0].toTensor()) || !arguments[1].isInt()) return {};
  const at::Tensor classes = arguments[0].toTensor();
  if (classes.scalar_type() != at::kLong || arguments[1].toInt() <= 0) return {};
  Ints sizes = classes.sizes().vec();
  sizes.push_back(arguments[1].toInt());
  return contiguous_like(classes, sizes);
}

// (probabilities, how many, …): the kernel refuses zeros, which say nothing of its shape.
at::Tensor multinomial(const IValue* arguments) {
  if (!is_plain_real(arguments[0]) || !arguments[1].isInt() || !arguments[2].isBool()) return {};
  const at::Tensor input = arguments[0].toTensor();
  const std::int64_t count = arguments[1].toInt();
  if (input.dim() < 1 || input.dim() > 2 || input.numel() == 0 || count < 1) return {};
  if (!arguments[2].toBool() && count > input.size(-1)) return {};
  Ints sizes = input.sizes().vec();
  sizes.back() = count;
  return at::empty(sizes, at::TensorOptions(at::kLong).device(at::kMeta));
}

constexpr FormulaRow kMovingRows[] = {
    {"aten::_pad_enum", 4, pad},
    {"aten::flip", 2, flip},
    {"aten::roll", 3, roll},
    {"aten::rot90", 3, rot90},
    {"aten::grid_sampler", 5, grid_sampler},
    {"aten::where.self", 3, where},
    {"aten::isin.Scalar_Tensor", 4, is_number_in},
    {"aten::one_hot", 2, one_hot},
    {"aten::multinomial", 4, multinomial},
};

}  // namespace

std::span<const FormulaRow> moving_formulas() { return kMovingRows; }

}  // namespace fx::internal
