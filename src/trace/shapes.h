// What an operator would return, without its data: shapes, dtypes and strides.
//
// Operators run on the meta device. Where LibTorch has no meta kernel (in 1.13: convolution, batch_norm and more) the
// operator runs once on the CPU, on zeros of the right shapes; the random generator is left as it was, and equal calls
// are answered from memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <unordered_map>
#include <vector>

#include <fxgraph/shapes/stand_in.h>
#include <fxgraph/trace/op_record.h>

namespace fx::internal {

class ShapeOracle {
 public:
  /// The operators that have been met.
  OpTable& operators() { return operators_; }
  /// Replaces the arguments on `stack`, whose tensors are meta tensors, by the results. Throws c10::Error when the
  /// operator refuses these shapes. In-place operators write to the meta tensors.
  void run(const c10::OperatorHandle& op, OpRecord& record, torch::jit::Stack& stack);

 private:
  void run_on_zeros(const c10::OperatorHandle& op, const OpRecord& record, torch::jit::Stack& stack);

  OpTable operators_;
  std::unordered_map<std::string, std::vector<c10::IValue>> answers_;
};

}  // namespace fx::internal
