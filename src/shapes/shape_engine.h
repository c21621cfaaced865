// What an operator would return, without its data: shapes, dtypes and strides.
//
// The tracer asks it for every call that it records, and ShapeProp, by which rules and reports know shapes, for every
// operator that it comes to.
//
// Its row answers where that decides (ops/size_inference.h). Else operators run on the meta device. Where LibTorch
// has no meta kernel (in 1.13: convolution, batch_norm and more) the operator runs once on the CPU, on zeros of the
// right shapes, and, when calls of its kind are new to the process, once more on ones: shapes that differ then depend
// on data. The random generator is left as it was, and equal calls are answered from memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fxgraph/shapes/fake_input.h>
#include <fxgraph/shapes/op_record.h>

namespace fx::internal {

class ShapeEngine {
 public:
  /// The operators that have been met.
  OpTable& operators() { return operators_; }
  /// Replaces the arguments on `stack`, whose tensors are meta tensors, by the results. Throws c10::Error when the
  /// operator refuses these shapes. In-place operators write to the meta tensors. False, and the stack is not to be
  /// used, when the results have shapes that only data tells (`nonzero`), or none on the meta device (sparse).
  bool run(const c10::OperatorHandle& op, OpRecord& record, torch::jit::Stack& stack);

  /// Whether operators may run on zeros; when not, run() returns false for what only that would tell. They may at
  /// first.
  void allow_data(bool allow) { may_run_on_data_ = allow; }
  /// Whether one has, since the last time that this was asked.
  bool has_run_on_data() { return std::exchange(has_run_on_data_, false); }

 private:
  bool run_on_zeros(const c10::OperatorHandle& op, const OpRecord& record, torch::jit::Stack& stack);

  OpTable operators_;
  bool may_run_on_data_ = true;
  bool has_run_on_data_ = false;
  /// By a call in words; no results where only data tells them.
  std::unordered_map<std::string, std::optional<std::vector<c10::IValue>>> answers_;
};

}  // namespace fx::internal
