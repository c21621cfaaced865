// StateKeeper: runs of a program that leave no trace in it.
//
//   { const fx::StateKeeper keeper(*gm);  gm->run(inputs); }   // buffers that the program writes are as before
//
// For whoever runs a program to learn something about it: shapes, time, equality. Copies tensors only where the program
// writes at all. Thread-safety: none.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

class StateKeeper {
 public:
  explicit StateKeeper(const GraphModule& module);
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;
  /// Puts parameters and buffers back to what they were.
  ~StateKeeper();

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;
};

}  // namespace fx
