// The engine that a program is lowered to, and what it and the other engines said of the program's layers.
//
// A packed layer is saved unpacked and packed anew by whichever engine is set when the file is loaded. What only its
// own engine takes cannot be loaded under another, or computes something else there.
//
// Thread-safety: as that of LibTorch's engine, which is the process's.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/rewriter/quantize/config.h>

namespace fx::quantize {

/// Nodes of the float program, and what is to be said of each.
using NodeNotes = std::vector<std::pair<std::string, std::string>>;

class TargetEngine {
 public:
  /// With `every_engine`, layers are packed only where each engine of this LibTorch packs and computes them.
  TargetEngine(QuantBackend backend, bool every_engine) : backend_(backend), every_engine_(every_engine) {}

  QuantBackend backend() const { return backend_; }

  /// Notes that the node is computed between dequantize and quantize.
  void refuse(const std::string& node, const std::string& why);
  /// Notes that the node's weights stay float.
  void keep_float(const std::string& node, const std::string& why);
  /// Calls `pack`, which throws what an engine has against the layer, with each other engine. Throws Error(unsupported)
  /// when one refuses and every engine must do; notes it otherwise.
  void ask_others(const std::string& node, const std::function<void(QuantBackend)>& pack);
  /// The packed parameters of a matrix whose inputs go up to `largest_input`. Throws as ask_others, and what the engine
  /// itself throws.
  c10::IValue pack_matrix(const std::string& node, const at::Tensor& weight, const c10::IValue& bias,
                          std::int64_t largest_input);

  const NodeNotes& refused() const { return refused_; }  ///< in the reference form
  const NodeNotes& kept() const { return kept_; }        ///< float
  const NodeNotes& tied() const { return tied_; }        ///< what only this engine can load

 private:
  QuantBackend backend_;
  bool every_engine_;
  NodeNotes refused_, kept_, tied_;
};

}  // namespace fx::quantize
