// FX graph mode quantization: prepare, run on samples, convert.
//
//   auto prepared = fx::prepare(*gm, fx::QuantConfig::defaults(), {x});
//   for (const torch::Tensor& batch : samples) prepared->forward(batch);
//   auto int8 = fx::convert(*prepared);                     // or {.backend = fx::QuantBackend::reference}
//   int8->save("model.int8.pt");                            // LibTorch and Python load it
//
// torch.ao.quantization.quantize_fx, over the matcher and the rewriter. prepare() makes a copy of the program with
// operators instead of modules, batch normalisation folded, and an observer after each value that will be quantized.
// convert() writes the reference form, in which each quantized operator stands between dequantize and quantize, and
// lowers it to the engine's kernels. What stays float says why: quantization_reasons().
//
// Other modes need no samples: prepare with QuantConfig::dynamic() or weight_only(), then convert at once.
// prepare_qat() puts fake quantization instead, with gradients: train the result with any optimiser, then convert it.
//
// Thread-safety: programs are not changed; different ones may be worked on at once.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/quantize/config.h>

namespace fx {

/// Returns a copy of `module`, in evaluation mode, that observes. `example` is one set of inputs; it is run to learn
/// the types of values. Throws Error(not_found) when the configuration names a node, path or type that is not there,
/// Error(execution) when the example does not run.
std::shared_ptr<GraphModule> prepare(const GraphModule& module, const QuantConfig& config,
                                     const std::vector<c10::IValue>& example);

/// The same for training: fake quantization instead of observers, batch normalisation folded in a way that trains. In
/// training mode; eval() uses the running statistics and leaves ranges as they are. Parameters are copies.
std::shared_ptr<GraphModule> prepare_qat(const GraphModule& module, const QuantConfig& config,
                                         const std::vector<c10::IValue>& example);

/// How a prepared program is converted.
struct ConvertOptions {
  /// Whose kernels it will call; `reference` stops at the reference form.
  QuantBackend backend = QuantBackend::automatic;
  /// More nodes that stay float, by name.
  std::vector<std::string> keep_float{};
  /// Packs layers only where every engine of this LibTorch can: a saved program is packed anew by the engine that is
  /// set when it is loaded. Always so for `automatic`; otherwise QuantReason::engine says what is only for the one.
  bool every_engine = false;
};

/// Returns the quantized program; `prepared` stays as it is. Throws Error(invalid_argument) when a value was never
/// observed, or when `prepared` does not come from prepare, Error(unsupported) when the engine is missing.
std::shared_ptr<GraphModule> convert(const GraphModule& prepared, const ConvertOptions& options = {});

/// Makes up for what rounding the weights does to the mean of each output channel of convolutions and linear layers:
/// adds to their bias the mean, over the samples, of what the float weight gives and the rounded one does not. Works on
/// the weights' own errors, so layers do not disturb each other. Returns how many layers were corrected. `prepared` has
/// seen its samples; call it before convert. Throws Error(invalid_argument) when it was called before.
std::size_t correct_bias(GraphModule& prepared, const std::vector<std::vector<c10::IValue>>& samples);

/// What became of one node of the float program.
struct QuantReason {
  std::string node;        ///< its name in the flat program
  std::string op;          ///< the operator that it calls
  std::string path;        ///< of its module, if it has one
  bool quantized = false;  ///< whether convert does
  std::string reason;      ///< why not; or what is to be known about how
  std::string engine;      ///< the only one that can load the saved layer; empty when every engine can
};

/// For each operator of the flat program, in its order: what convert would do, and why.
std::vector<QuantReason> quantization_reasons(const GraphModule& prepared, const ConvertOptions& options = {});

}  // namespace fx
