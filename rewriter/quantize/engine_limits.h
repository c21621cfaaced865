// What an engine does not refuse itself, and yet cannot do for a layer: known limits, and what a sample of it computes.
//
// Thread-safety: as that of LibTorch's engine, which is the process's.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>

#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/quantize/config.h>
#include <fxgraph/rewriter/quantize/trial.h>

namespace fx::quantize {

/// A layer as an engine would get it.
struct EngineLayer {
  const Row& row;
  at::Tensor weight;  ///< quantized
  c10::IValue bias;   ///< a tensor or None
  std::int64_t groups = 1;
  std::optional<Grid> input{};  ///< how the input is rounded, where that is known
};

/// Throws Error(unsupported) with the reason when `backend` would add up or multiply the layer wrongly. Cost: of
/// transposed convolutions, a product of the weight's channels.
void check_engine_limits(QuantBackend backend, const EngineLayer& layer);

/// Throws Error(unsupported) when what `backend` packs of the layer cannot be saved.
void check_saving(QuantBackend backend, const EngineLayer& layer);

/// True when `backend` adds products of bytes up two by two in 16 bits, as oneDNN and fbgemm do where the processor has
/// no VNNI: two of 255 · 127 are too many. Found out by a layer of such numbers, once in a process.
bool adds_up_in_16_bits(QuantBackend backend);
/// Throws Error(unsupported) when that happens to products of this weight with inputs up to `largest_input`.
void check_sums(QuantBackend backend, const at::Tensor& quantized_weight, std::int64_t largest_input = 255);

}  // namespace fx::quantize
