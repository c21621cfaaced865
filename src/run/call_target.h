// What fx::Call says of a call, as LibTorch has it: for plans, which ask once, for the Interpreter, which asks at every
// call, and where the values decide between overloads.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include <fxgraph/ops/call_on_kinds.h>
#include <fxgraph/run/operators.h>

namespace fx {

/// The operator of a target that spells out its overload, or that has one alone; else null.
const TorchOperator* exact_operator(Op op, Symbol target);
/// LibTorch's operator for the call; null when it has none.
const TorchOperator* torch_operator(const Call& call);

/// Of a node that gives a dtype, layout or memory format, which are ints as values, the annotation that says so; else
/// nothing.
std::string enumerator_kind(const Node& node);

/// What of a value decides between overloads.
enum class InputKind : std::uint8_t { other, tensor, integer, floating, boolean, complex, string, device, none };
InputKind kind_of(const c10::IValue& value);

/// A call of a function or method with values for its nodes: what fx::Call says of it, and of which operator it is.
class CallOnValues {
 public:
  /// The call of `node` as it is written, with values of the kinds of `inputs` for its all_input_nodes().
  CallOnValues(const Node& node, const std::vector<c10::IValue>& inputs);
  /// A call with these values.
  CallOnValues(Op op, Symbol target, const CallValues& values);

  /// The operator; null when the call is none.
  const TorchOperator* op() const { return op_; }
  /// Its arguments; `inputs` are as many as the first constructor was given, and of the same kinds.
  torch::jit::Stack arguments(const std::vector<c10::IValue>& inputs) const;
  /// The same of the second constructor's values.
  torch::jit::Stack arguments() const { return arguments(inputs_); }
  /// What the call is given by position, as it is written.
  std::vector<c10::IValue> positional(const std::vector<c10::IValue>& inputs) const;
  /// `no overload of torch.add takes these arguments: (Tensor, String)`, and what is given twice.
  std::string refusal() const { return call_.refusal(); }

 private:
  void resolve();

  internal::CallOnKinds call_;
  std::vector<c10::IValue> inputs_;
  const TorchOperator* op_ = nullptr;
};

}  // namespace fx
