// QuantRecord: what prepare() knew, kept in the prepared program as its module `quantization`, for convert().
//
// It is copied and moved with the program. Thread-safety: read-only once made.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/rewriter/quantize/annotation.h>
#include <fxgraph/rewriter/quantize/config.h>
#include <fxgraph/rewriter/quantize/observer.h>

namespace fx::quantize {

/// Where the record lies in a prepared program.
inline constexpr const char* kRecordPath = "quantization";

class QuantRecord : public torch::nn::Module {
 public:
  QuantRecord() : torch::nn::Module("QuantRecord") {}

  QuantConfig config;
  bool training = false;
  std::unordered_map<std::string, ValueInfo> values;       ///< by name in the flat program; look-up only
  std::unordered_map<std::string, std::string> observers;  ///< path of the observer by the value's name; look-up only

  /// A layer that trains: the paths of its tensors and, if one was folded into it, of its batch normalisation.
  struct Layer {
    std::string weight, bias, norm;
    std::string result;  ///< the node whose value is the layer's in the float program; empty: the layer's own
  };
  std::unordered_map<std::string, Layer> layers;  ///< by node; look-up only
  /// What the program writes, as it was before any sample ran.
  struct State {
    std::string path;
    at::Tensor value;
    std::vector<std::int64_t> strides;  ///< of the tensor at the path
    bool requires_grad = false;
    /// Gives `tensor` these numbers, sizes and strides, and takes it out of what gradients it came into.
    void restore(const at::Tensor& tensor) const;
  };
  std::vector<State> state;
  std::unordered_set<std::string> not_finite;  ///< values of the example, by node

  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;
  /// The shapes of `graph`, by the names of its nodes.
  Shapes shapes_of(const Graph& graph) const;
};

/// Throws Error(invalid_argument) when `prepared` does not come from prepare().
const QuantRecord& record_of(const GraphModule& prepared);

/// What the example and the samples since showed of the values.
Finiteness finiteness_of(const GraphModule& prepared, const QuantRecord& record);

/// The range found by the observer at `path`. Throws Error(not_found), and as Observer::parameters.
QuantParameters observed_parameters(const GraphModule& prepared, const std::string& path);

}  // namespace fx::quantize
