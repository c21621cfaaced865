// QuantConfig: what is quantized, and how: for the whole program, by module path, by type, by node.
//
//   fx::QuantConfig config = fx::QuantConfig::defaults();              // static, as torch.ao.quantization's defaults
//   config.keep_float_paths({"features\\.0.*"});                       // RE2, on a module's path or that of one around
//   config.nodes.push_back({"add_3", fx::QuantSettings::keep_float()});
//
// What is more particular wins: a node, then a path, then a type, then the global settings; among equals the last.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/types.h>

namespace fx {

/// The engine whose kernels a converted program calls.
enum class QuantBackend : std::uint8_t {
  automatic,  ///< the first of available_quant_backends()
  fbgemm,
  onednn,
  qnnpack,
  reference,  ///< none: dequantize, the operator on floats, quantize
};
/// Returns the name as it is spelt above; of `automatic`, "auto".
std::string_view to_string(QuantBackend backend);
/// Throws Error(invalid_argument) that lists the names.
QuantBackend parse_quant_backend(std::string_view name);
/// The engines that this LibTorch has, the one that is usually fastest on this machine first; without `reference`.
std::vector<QuantBackend> available_quant_backends();
/// `backend` itself, or what automatic stands for. Throws Error(unsupported) that lists what there is when LibTorch was
/// built without it.
QuantBackend resolve_quant_backend(QuantBackend backend);

/// How the range of a value is found.
enum class RangeKind : std::uint8_t {
  min_max,         ///< smallest and largest value seen
  moving_average,  ///< of the smallest and largest of each run
  histogram,       ///< the range with the least squared error, by the histogram of all values
  percentile,      ///< what leaves out the rarest on both sides
};
/// Returns the name as parse_quant_config reads it.
std::string_view to_string(RangeKind kind);

/// How one kind of value becomes whole numbers.
struct Quantizer {
  DType dtype = DType::quint8;             ///< quint8 or qint8
  bool symmetric = false;                  ///< zero is the middle
  bool per_channel = false;                ///< weights: a scale for each output channel
  RangeKind range = RangeKind::histogram;  ///< how scale and zero point are found
  bool reduce_range = false;               ///< one bit less, for kernels that add up in 16 bits
  double averaging_constant = 0.01;        ///< moving_average: the weight of a new run
  double percentile = 99.99;               ///< percentile: how much stays inside
  int bins = 2048;                         ///< histogram, percentile

  /// The smallest and largest whole number.
  std::int64_t quant_min() const;
  /// The largest whole number; with reduce_range one bit less.
  std::int64_t quant_max() const;
  /// Equal in everything.
  friend bool operator==(const Quantizer&, const Quantizer&) = default;
};

/// What of a node is quantized.
enum class QuantMode : std::uint8_t {
  keep_float,   ///< as it is
  fixed_range,  ///< weights and activations; ranges from samples (static quantization)
  dynamic,      ///< weights; ranges of activations found anew in each run: linear, recurrent, embeddings
  weight_only,  ///< weights, computed with as floats: linear and convolutions; embeddings have a kernel
};
/// Returns the name as parse_quant_config reads it.
std::string_view to_string(QuantMode mode);

/// How one node is quantized.
struct QuantSettings {
  QuantMode mode = QuantMode::fixed_range;  ///< what of it
  Quantizer activation{};                   ///< its inputs and result; quint8 by default
  /// Its weight.
  Quantizer weight{.dtype = DType::qint8, .symmetric = true, .per_channel = true, .range = RangeKind::min_max};

  /// Settings that leave a node as it is.
  static QuantSettings keep_float() { return {.mode = QuantMode::keep_float}; }
  /// Equal in everything.
  friend bool operator==(const QuantSettings&, const QuantSettings&) = default;
};

/// What is quantized and how; see the top of this file.
struct QuantConfig {
  using Entry = std::pair<std::string, QuantSettings>;  ///< what it applies to, and how
  QuantSettings global{};                               ///< for what no entry is about
  std::vector<Entry> types{};                           ///< `Conv2d`, `aten::conv2d`
  std::vector<Entry> paths{};                           ///< RE2 on the whole path of a module, or of one around it
  std::vector<Entry> nodes{};                           ///< by the name that the node has in prepare's result
  /// Scales channels between neighbouring layers so that their weights have like ranges, before anything is measured.
  bool equalize = false;

  /// What torch.ao.quantization takes for this engine: static; activations by histogram, weights per channel (qnnpack:
  /// per tensor); fbgemm without one bit of the activations. Where onednn or fbgemm add products up in 16 bits (x86
  /// without VNNI), one bit less of the weights.
  static QuantConfig defaults(QuantBackend backend = QuantBackend::automatic);
  /// Weights ahead, activations in each run: no samples are needed. The engine decides about a bit of the weights, too.
  static QuantConfig dynamic(QuantBackend backend = QuantBackend::automatic);
  /// Weights alone: no samples are needed.
  static QuantConfig weight_only();
  /// For training: moving averages.
  static QuantConfig training(QuantBackend backend = QuantBackend::automatic);

  /// Adds entries for these nodes.
  void keep_float_nodes(const std::vector<std::string>& names);
  /// Adds entries for these paths, RE2 on the whole path.
  void keep_float_paths(const std::vector<std::string>& expressions);

  /// Returns the settings for a node: its name, its type, the path of its module. Complexity: the entries.
  const QuantSettings& settings_for(std::string_view node, std::string_view type, std::string_view module_type,
                                    std::string_view path) const;
};

/// Reads a configuration on top of `base`:
///
///   {"global": {"mode": "static", "activation": {"range": "min-max"}, "weight": {"per_channel": false}},
///    "types": {"Conv2d": {…}}, "paths": {"features\\.0": {"mode": "float"}}, "nodes": {"add": {"mode": "float"}},
///    "equalize": true}
///
/// Entries start from the global settings. Throws Error(syntax) with line and column, Error(invalid_argument) naming
/// the key that does not exist and those that do.
QuantConfig parse_quant_config(std::string_view json, QuantConfig base);

}  // namespace fx
