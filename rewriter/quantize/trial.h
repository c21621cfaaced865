// Trials: a kernel runs once, on made-up whole numbers of the sizes that the example had, before a program relies on
// it.
//
// Kernels on quantized tensors refuse some arguments, ranks and layouts only when they run, and a few compute something
// else than the operator on floats. What fails its trial stays in the reference form, with the reason. Layers are not
// compared: their sums may saturate on numbers like these.
//
// Cost: a run of each kernel and its operator. Thread-safety: none; the module is read.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <unordered_map>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx::quantize {

class Trial {
 public:
  using Values = std::unordered_map<std::string, ValueInfo>;  ///< by the names of the float program; look-up only

  /// `module` holds the weights. Both must outlive it.
  Trial(const GraphModule& module, const Values& values) : module_(module), values_(values) {}

  /// Why `kernel`, a call on quantized values, cannot stand for `op`, the same on their dequantized forms and, with
  /// `relu`, a relu on that. Empty when it can, or when an operand is not known before the program runs.
  std::string fault(const Node& kernel, const Node& op, bool relu, bool compare) const;

 private:
  enum class Layout { contiguous, channels_last };
  using Operands = std::function<c10::IValue(Node&)>;

  std::string fault_in(Layout layout, const Node& kernel, const Node& op, bool relu, bool compare) const;
  c10::IValue operand(const Node& node, Layout layout) const;
  at::Tensor stand_in(const Node& value, Layout layout) const;

  const GraphModule& module_;
  const Values& values_;
};

/// The scale and zero point that a node of a converted program gives its value; nothing where no argument says so.
struct Grid {
  double scale = 0;
  std::int64_t zero_point = 0;
};
std::optional<Grid> grid_of(const Node& quantized);

}  // namespace fx::quantize
