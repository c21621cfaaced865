// What PT2E writes of quantized programs: numbers rounded to steps and back, and the steps that are chosen for them.
#include <algorithm>
#include <utility>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace quantized_rows {
namespace {

// (input, scale, zero_point, quant_min, quant_max, dtype): numbers, or tensors of one
void require_numbers(SizeCall& c, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const TensorType* tensor = c.argument(name).tensor();
    if (!tensor) continue;
    if (tensor->dtype == DType::boolean) SizeCall::give_up("arithmetic of bool");
    c.require_equal(tensor->numel(), 1);
  }
}
void quantize(SizeCall& c) {
  require_numbers(c, {"scale", "zero_point", "quant_min", "quant_max"});
  c.give(c.tensor("input").sizes, c.dtype("dtype", DType::int8));
}
void dequantize(SizeCall& c) {
  require_numbers(c, {"scale", "zero_point"});
  const DType dtype = c.dtype("out_dtype", DType::float32);
  if (!is_float(dtype)) SizeCall::give_up("whole numbers, which are promoted");
  c.give(c.tensor("input").sizes, dtype);
}
void converted(SizeCall& c) { c.give(c.tensor("input").sizes, c.dtype("dtype", DType::float32)); }

/// Of the last dimension and `axis`, swapped, so that what there is one of for each channel broadcasts.
Sizes of_channels(SizeCall& c) {
  Sizes sizes = c.tensor("input").sizes;
  const std::size_t axis = c.dim("axis", sizes.size());
  if (sizes.empty() || c.tensor("input").dtype == DType::boolean) SizeCall::give_up("no channels, or of bool");
  std::swap(sizes[axis], sizes.back());
  for (const char* name : {"scales", "zero_points"}) {
    if (!c.given(name)) continue;
    c.require(c.tensor(name).sizes.size() <= sizes.size(), "no more dimensions than the input");
    sizes = c.broadcast(sizes, c.tensor(name).sizes);
  }
  std::swap(sizes[axis], sizes.back());
  if (sizes != c.tensor("input").sizes) SizeCall::give_up("more channels than the input has");
  return sizes;
}
void quantize_channels(SizeCall& c) { c.give(of_channels(c), c.dtype("dtype", DType::int8)); }
void dequantize_channels(SizeCall& c) { c.give(of_channels(c), c.dtype("out_dtype", DType::float32)); }
void fake_quantize_channels(SizeCall& c) {
  if (c.tensor("input").dtype != DType::float32) SizeCall::give_up("types that are promoted");
  c.give(of_channels(c), DType::float32);
}

Sizes of_tokens(SizeCall& c) {
  return c.broadcast({&c.tensor("input").sizes, &c.tensor("scales").sizes, &c.tensor("zero_points").sizes});
}
void quantize_tokens(SizeCall& c) { c.give(of_tokens(c), c.dtype("dtype", DType::int8)); }
void dequantize_tokens(SizeCall& c) { c.give(of_tokens(c), c.dtype("output_dtype", DType::float32)); }

// (input, quant_min, quant_max, eps, dtype) -> (scale, zero_point)
void choose(SizeCall& c) {
  SizeCall::float_type(c.tensor("input"));
  c.require_at_least(c.tensor("input").numel(), 1);
  c.give({1}, DType::float64);
  c.give({1}, DType::int64);
}

/// (input, dtype) -> (scales, zero_points): one for each row
void choose_for_tokens(SizeCall& c) {
  const TensorType& input = c.tensor("input");
  if (input.sizes.empty() || !is_float(input.dtype)) SizeCall::give_up("no rows of floats");
  c.require_at_least(input.sizes.back(), 1);
  Sizes sizes = input.sizes;
  sizes.back() = 1;
  const bool asymmetric = c.schema().target.view().find("asymmetric") != std::string_view::npos;
  const DType wide = input.dtype == DType::float16 ? DType::float32 : input.dtype;
  c.give(sizes, asymmetric ? DType::float64 : wide);
  c.give(std::move(sizes), asymmetric ? DType::int64 : wide);
}

constexpr OperatorRecord kRows[] = {
    {"quantized_decomposed::quantize_per_tensor", quantize},
    {"quantized_decomposed::dequantize_per_tensor", dequantize},
    {"quantized_decomposed::quantize_per_channel", quantize_channels},
    {"quantized_decomposed::dequantize_per_channel", dequantize_channels},
    {"quantized_decomposed::fake_quant_per_channel", fake_quantize_channels},
    {"quantized_decomposed::quantize_per_token", quantize_tokens},
    {"quantized_decomposed::dequantize_per_token", dequantize_tokens},
    {"quantized_decomposed::choose_qparams quantized_decomposed::choose_qparams_symmetric", choose},
    {"quantized_decomposed::choose_qparams_per_token quantized_decomposed::choose_qparams_per_token_asymmetric "
     "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl",
     choose_for_tokens},
    {"quantized_decomposed::convert_element_type", converted},
};

}  // namespace
}  // namespace quantized_rows

std::span<const OperatorRecord> quantized_operators() { return quantized_rows::kRows; }

}  // namespace fx::internal
