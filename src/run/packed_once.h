// Packing of weights: calls such as mkldnn_prepacked::conv2d_prepack, which bring weights into the order in which a
// kernel wants them, and whose results are opaque objects that other operators take.
//
// In a graph they are calls like any others, so that they print, match and can be undone. What they pack are constants:
// a plan packs when it runs for the first time, and again when a tensor that went into it was written. LibTorch counts
// the writes; what is written through data_ptr it does not count.
//
// Thread-safety: several threads may ask one PackedOnce.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <fxgraph/run/operators.h>

namespace fx {

/// True when the operator makes one object of a class of LibTorch's, which only other operators understand.
bool is_packing(const c10::FunctionSchema& schema);

/// True for an operator that writes to the packed objects that it runs, so that two threads may not at once: XNNPACK's,
/// and fxgraph's own that take such objects.
bool keeps_state(const c10::FunctionSchema& schema);

/// Runs such an operator while nobody else runs the packed objects on its stack.
void run_alone(const TorchOperator& op, torch::jit::Stack& stack);

class PackedOnce {
 public:
  PackedOnce(const TorchOperator& pack, std::vector<c10::IValue> arguments)
      : pack_(pack), arguments_(std::move(arguments)) {}

  /// The packed object; throws what the operator throws. Costs a look at the version of each tensor when nothing was
  /// written since.
  c10::IValue get();

 private:
  /// False when a tensor was written since, or cannot tell.
  bool is_current() const;

  const TorchOperator& pack_;
  std::vector<c10::IValue> arguments_;
  std::mutex mutex_;
  std::vector<std::uint32_t> versions_;  ///< of the tensors among the arguments, when they were packed
  c10::IValue packed_;
};

}  // namespace fx
