#include <fxgraph/rewriter/quantize/engine_limits.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <fxgraph/rewriter/quantize/packed.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

namespace {

// fbgemm and qnnpack round the bias too, in steps of the sums, to 32 bits.
void check_bias(const EngineLayer& layer) {
  if (!layer.bias.isTensor() || !layer.input) return;
  const at::Tensor& weight = layer.weight;
  const bool by_channel = weight.qscheme() != at::kPerTensorAffine;
  const at::Tensor scales = by_channel ? weight.q_per_channel_scales() : at::full({1}, weight.q_scale(), at::kDouble);
  const at::Tensor steps = layer.bias.toTensor().to(at::kDouble) / (scales.to(at::kDouble) * layer.input->scale);
  if (steps.numel() && steps.abs().max().item<double>() > 0x1p30)
    throw Error(ErrorKind::unsupported, "its bias is too large for sums of 32 bits");
}

// Whole numbers around zero in no order: they are other ones wherever they are read from another place.
at::Tensor scattered(at::IntArrayRef sizes, std::int64_t middle) {
  const at::Tensor order = at::arange(c10::multiply_integers(sizes), at::kLong);
  return (order * 89 + order.div(7, "floor") * 31).remainder(2 * middle + 1).sub(middle).to(at::kFloat).view(sizes);
}

// LibTorch 2.14 packs the weight of a transposed convolution for oneDNN in an order that is right only where a group
// has as many channels before as after, and says nothing. So a layer of the same channels, over one point, is computed
// and compared.
void check_channels(QuantBackend backend, const EngineLayer& layer) {
  constexpr std::int64_t kMiddle = 8, kFurthest = 3;  // of numbers; of results, in steps
  const std::int64_t in = layer.weight.size(0), out = layer.weight.size(1), groups = layer.groups;
  const auto rank = static_cast<std::size_t>(layer.weight.dim() - 2);
  const auto sized = [&](std::int64_t first, std::int64_t second) {
    std::vector<std::int64_t> sizes(rank + 2, 1);
    sizes[0] = first, sizes[1] = second;
    return sizes;
  };
  const at::Tensor weight = scattered(sized(in, out), kMiddle), input = scattered(sized(1, in), kMiddle);
  const at::Tensor expected = at::bmm(input.view({groups, 1, in / groups}), weight.view({groups, in / groups, out}));
  const double scale = std::max(1.5, expected.abs().max().item<double>() / 100);
  const auto all = [&](std::int64_t number) { return c10::List<std::int64_t>(std::vector(rank, number)); };
  const EngineScope engine(backend);
  const c10::IValue packed =
      call_operator(layer.row.prepack,
                    {at::quantize_per_tensor(weight, 1, 0, at::kQInt8), {}, all(1), all(0), all(0), all(1), groups});
  const at::Tensor found =
      call_operator(layer.row.kernel, {at::quantize_per_tensor(input, 1, 128, at::kQUInt8), packed, scale, 128})
          .toTensor();
  const at::Tensor off = (found.dequantize().flatten() - expected.flatten()).abs();
  if (off.max().item<double>() > kFurthest * scale)
    throw Error(ErrorKind::unsupported,
                "this LibTorch packs the weight of a transposed convolution wrongly where a "
                "group has " +
                    std::to_string(in / groups) + " channels before and " + std::to_string(out) + " after");
}

// Of 64 products of the largest numbers: a pair that does not fit is cut off at about half of what it is.
bool loses_large_sums(QuantBackend backend) {
  constexpr std::int64_t kChannels = 64, kInput = 255, kWeight = 127, kResult = 200;
  const EngineScope engine(backend);
  const double scale = static_cast<double>(kChannels * kInput * kWeight) / kResult;
  const auto is_less = [&](const char* kernel, at::IntArrayRef input, const c10::IValue& packed) {
    const at::Tensor x = at::_make_per_tensor_quantized_tensor(at::full(input, kInput, at::kByte), 1, 0);
    return call_operator(kernel, {x, packed, scale, 0}).toTensor().int_repr().min().item<std::int64_t>() < kResult - 1;
  };
  const auto weight = [&](at::IntArrayRef sizes) {
    return at::_make_per_tensor_quantized_tensor(at::full(sizes, kWeight, at::kChar), 1, 0);
  };
  const c10::IValue linear =
      call_operator("quantized::linear_prepack", {weight({kChannels, kChannels}), c10::IValue()});
  const c10::List<std::int64_t> one({1, 1}), none({0, 0});
  const c10::IValue convolution = call_operator(
      "quantized::conv2d_prepack", {weight({kChannels, kChannels, 1, 1}), c10::IValue(), one, none, one, 1});
  return is_less("quantized::linear", {16, kChannels}, linear) ||
         is_less("quantized::conv2d.new", {1, kChannels, 4, 4}, convolution);
}

// The processor stays the same: asked once.
template <QuantBackend backend>
bool loses_large_sums_here() {
  static const bool found = loses_large_sums(backend);
  return found;
}

}  // namespace

bool adds_up_in_16_bits(QuantBackend backend) {
  const at::NoGradGuard no_grad;
  switch (backend) {
    case QuantBackend::onednn: return loses_large_sums_here<QuantBackend::onednn>();
    case QuantBackend::fbgemm: return loses_large_sums_here<QuantBackend::fbgemm>();
    default: return false;  // qnnpack widens each byte
  }
}

void check_sums(QuantBackend backend, const at::Tensor& quantized_weight, std::int64_t largest_input) {
  if (!quantized_weight.numel() || !adds_up_in_16_bits(backend)) return;
  const std::int64_t largest = quantized_weight.int_repr().to(at::kShort).abs().max().item<std::int64_t>();
  if (2 * largest_input * largest > std::numeric_limits<std::int16_t>::max())
    throw Error(ErrorKind::unsupported,
                "on a processor without VNNI its products are added up in 16 bits: its weight wants reduce_range");
}

void check_saving(QuantBackend backend, const EngineLayer& layer) {
  if (backend == QuantBackend::qnnpack && layer.weight.dim() == 5)
    throw Error(ErrorKind::unsupported, "packed weights of volumes cannot be saved");
}

void check_engine_limits(QuantBackend backend, const EngineLayer& layer) {
  const bool transposed = layer.row.packet.starts_with("aten::conv_transpose");
  // It reads sizes of the result that were never written.
  if (backend == QuantBackend::qnnpack && transposed && layer.weight.dim() == 5)
    throw Error(ErrorKind::unsupported, "it has no transposed convolution of volumes");
  if (transposed) check_channels(backend, layer);
  check_sums(backend, layer.weight, layer.input ? layer.input->quant_max : 255);
  if (backend != QuantBackend::onednn) check_bias(layer);
}

}  // namespace fx::quantize
