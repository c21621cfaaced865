// Trials: a kernel runs once, on made-up whole numbers of the sizes that the example had, before a program relies on
// it.
//
// Kernels on quantized tensors refuse some arguments, ranks and layouts only when they run, and a few compute something
// else than the operator on floats. What fails its trial stays in the reference form, with the reason. Operators like
// add and clamp ask which engine is set when they run: they are tried under the one that they are lowered to and under
// the one that is set now. Layers are not compared: their sums may saturate on numbers like these.
//
// Cost: a run of each kernel and its operator. Thread-safety: none; the module is read.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/quantize/config.h>

namespace fx::quantize {

class Trial {
 public:
  using Values = std::unordered_map<std::string, ValueInfo>;  ///< by the names of the float program; look-up only

  /// `module` holds the weights. Both must outlive it.
  Trial(const GraphModule& module, QuantBackend backend, const Values& values)
      : module_(module), backend_(backend), values_(values) {}

  /// Why `kernel`, a call on quantized values, cannot stand for `op`, the same on their dequantized forms and, with
  /// `relu`, a relu on that. Empty when it can, or when an operand is not known before the program runs.
  std::string fault(const Node& kernel, const Node& op, bool relu, bool compare) const;

 private:
  /// The last two: images of one point, which lie in both ways at once; but those of convolutions say by their strides
  /// that their channels are last.
  enum class Layout { contiguous, channels_last, point, point_of_convolution };
  static bool is_point(Layout layout) { return layout == Layout::point || layout == Layout::point_of_convolution; }
  using Operands = std::function<c10::IValue(Node&)>;

  std::string fault_now(const Node& kernel, const Node& op, bool relu, bool compare) const;
  std::string fault_in(Layout layout, const Node& kernel, const Node& op, bool relu, bool compare) const;
  c10::IValue operand(const Node& node, Layout layout) const;
  at::Tensor fake_input(const Node& value, Layout layout) const;

  const GraphModule& module_;
  QuantBackend backend_;
  const Values& values_;
};

/// The tensor that a quantized value stands for, as the float program's example had it; null where that is not known.
const TensorInfo* float_tensor_of(const Node& quantized, const Trial::Values& values);

/// How the value of a node of a converted program is rounded.
struct Grid {
  double scale = 0;
  std::int64_t zero_point = 0;
  DType dtype = DType::quint8;
  std::int64_t quant_max = 255;  ///< the largest whole number inside its range
};
/// By the node's notes, its arguments or those of the value that it moves; nothing where none of them says.
std::optional<Grid> grid_of(const Node& quantized);

namespace meta_key {
inline constexpr const char* kGrid = "quantize_grid";  ///< Grid: of a kernel's result
}  // namespace meta_key

}  // namespace fx::quantize
