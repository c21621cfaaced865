// What PT2E writes of a quantized program: the same arithmetic as in torch/ao/quantization/fx/_decomposed.py, in its
// order, for the last bit decides which step a number is rounded to.
#include <fxgraph/run/operator_sources.h>

namespace fx {

namespace {

constexpr const char* kChooseAsymmetric = R"(
def body(input: Tensor, dtype: int) -> Tuple[Tensor, Tensor]:
    low = input.amin([-1], True)
    low = torch.min(low, torch.zeros_like(low))
    high = input.amax([-1], True)
    high = torch.max(high, torch.zeros_like(high))
    scale = ((high - low) / 255.0).clamp(min=1.1920928955078125e-07)
    below = low / scale
    above = high / scale
    zero_point = torch.where((-128 + below) + (127 + above) > 0, -128 - below, 127 - above)
    return scale.to(7), torch.clamp(zero_point, -128, 127).round().to(4)
)";

const OperatorSource kQuantizedDecomposed[] = {
    {"quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) "
     "-> Tensor",
     R"(
def body(input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: int) -> Tensor:
    steps = torch.round(input.to(6) * (1.0 / scale)) + zero_point
    return torch.clamp(steps, quant_min, quant_max).to(dtype)
)"},
    {"quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, "
     "ScalarType dtype) -> Tensor",
     R"(
def body(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, dtype: int) -> Tensor:
    steps = torch.round(input.to(6) * (1.0 / float(scale.item()))) + zero_point.item()
    return torch.clamp(steps, quant_min, quant_max).to(dtype)
)"},
    {"quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
     "ScalarType dtype) -> Tensor",
     R"(
def body(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: Tensor, quant_max: Tensor, dtype: int) -> Tensor:
    steps = torch.round(input.to(6) * (1.0 / float(scale.item()))) + zero_point.item()
    return torch.clamp(steps, quant_min.item(), quant_max.item()).to(dtype)
)"},
    {"dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, "
     "*, ScalarType? out_dtype=None) -> Tensor",
     R"(
def body(input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: int,
         out_dtype: Optional[int]) -> Tensor:
    return (input.to(6 if out_dtype is None else out_dtype) - zero_point) * scale
)"},
    {"dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, "
     "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     R"(
def body(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, dtype: int,
         out_dtype: Optional[int]) -> Tensor:
    return (input.to(6 if out_dtype is None else out_dtype) - zero_point.item()) * scale.item()
)"},
    {"dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
     "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     R"(
def body(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: Tensor, quant_max: Tensor, dtype: int,
         out_dtype: Optional[int]) -> Tensor:
    return (input.to(6 if out_dtype is None else out_dtype) - zero_point.item()) * scale.item()
)"},
    {"choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, "
     "Tensor)",
     R"(
def body(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: int) -> Tuple[Tensor, Tensor]:
    low, high = torch.aminmax(input)
    low = torch.min(low, torch.zeros_like(low))
    high = torch.max(high, torch.zeros_like(high))
    least = torch.full([1], eps, dtype=6, device=input.device)
    scale = torch.max((high - low) / float(quant_max - quant_min), least)
    zero_point = torch.clamp(quant_min - torch.round(low / scale).to(3), quant_min, quant_max)
    return scale.to(7), zero_point.to(4)
)"},
    {"choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> "
     "(Tensor, Tensor)",
     R"(
def body(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: int) -> Tuple[Tensor, Tensor]:
    low, high = torch.aminmax(input)
    low = torch.min(low, torch.zeros_like(low))
    high = torch.max(-low, torch.max(high, torch.zeros_like(high)))
    least = torch.full([1], eps, dtype=6, device=input.device)
    scale = torch.max(high / (float(quant_max - quant_min) / 2), least)
    zero_point = 128 if dtype == 0 or dtype == 13 else 0
    return scale.to(7), torch.full([1], zero_point, dtype=4, device=input.device)
)"},
    {"quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, "
     "ScalarType dtype) -> Tensor",
     R"(
def body(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int,
         dtype: int) -> Tensor:
    steps = torch.round(input.to(6).transpose(axis, -1) * (1.0 / scales)) + zero_points
    return torch.clamp(steps, quant_min, quant_max).to(dtype).transpose(axis, -1)
)"},
    {"dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, "
     "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     R"(
def body(input: Tensor, scales: Tensor, zero_points: Optional[Tensor], axis: int, quant_min: int, quant_max: int,
         dtype: int, out_dtype: Optional[int]) -> Tensor:
    steps = input.transpose(axis, -1)
    if zero_points is not None:
        steps = steps - zero_points
    return (steps * scales).to(6 if out_dtype is None else out_dtype).transpose(axis, -1)
)"},
    {"choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
     R"(
def body(input: Tensor, dtype: int) -> Tuple[Tensor, Tensor]:
    assert dtype == 1, "quantized_decomposed::choose_qparams_per_token is defined for int8 alone"
    scales = input.abs().amax([-1], True)
    scales = scales.to(scales.dtype + int(scales.dtype == 5))
    scales = scales.clamp(min=1e-5).div(127)
    return scales, torch.zeros_like(scales)
)"},
    {"_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
     kChooseAsymmetric},
    {"choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", kChooseAsymmetric},
    {"quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType "
     "dtype) -> Tensor",
     R"(
def body(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: int) -> Tensor:
    return input.mul(1.0 / scales).add(zero_points).round().clamp(quant_min, quant_max).to(dtype)
)"},
    {"dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType "
     "dtype, ScalarType output_dtype) -> Tensor",
     R"(
def body(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: int,
         output_dtype: int) -> Tensor:
    return ((input - zero_points) * scales).to(output_dtype)
)"},
    {"quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
     "ScalarType dtype, int group_size) -> Tensor",
     R"(
def body(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: int,
         group_size: int) -> Tensor:
    whole = int(group_size > input.size(-1)) * int(scales.size(-1) == 1)
    width = group_size * (1 - whole) + input.size(-1) * whole
    groups = input.reshape([-1, width])
    assert not bool(torch.isnan(groups).any()), "quantized_decomposed::quantize_per_channel_group takes no NaN"
    steps = groups.mul(1.0 / scales.reshape([-1, 1])).add(zero_points.reshape([-1, 1])).round()
    return steps.clamp(quant_min, quant_max).to(dtype).reshape(input.size())
)"},
    {"dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, "
     "ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor",
     R"(
def body(input: Tensor, scales: Tensor, zero_points: Optional[Tensor], quant_min: int, quant_max: int, dtype: int,
         group_size: int, output_dtype: int) -> Tensor:
    whole = int(group_size > input.size(-1)) * int(scales.size(-1) == 1)
    width = group_size * (1 - whole) + input.size(-1) * whole
    groups = input.reshape([-1, width])
    steps = groups.sub(0) if zero_points is None else groups.sub(zero_points.reshape([-1, 1]))
    return steps.mul(scales.reshape([-1, 1])).reshape(input.size()).to(output_dtype)
)"},
    // The gradient goes through the rounding, and stops where it was cut off.
    {"fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) "
     "-> Tensor",
     R"(
def body(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int) -> Tensor:
    turned = input.transpose(axis, -1)
    scale = scales.to(6)
    middle = zero_points.to(3)
    steps = torch.round(turned * (1.0 / scale)) + middle
    result = ((torch.clamp(steps, quant_min, quant_max) - middle) * scale).detach()
    inside = torch.logical_and(steps >= quant_min, steps <= quant_max)
    passed = torch.where(inside, turned - turned.detach(), torch.zeros_like(turned))
    return (result + passed).transpose(axis, -1)
)"},
    {"convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor",
     "def body(input: Tensor, dtype: int) -> Tensor:\n    return input.to(dtype, copy=True)\n"},
};

}  // namespace

std::span<const OperatorSource> quantized_decomposed_operators() { return kQuantizedDecomposed; }

}  // namespace fx
