// StateKeeper: runs of a program that leave no trace in it.
//
//   { const fx::StateKeeper keeper(*gm);  gm->run(inputs); }   // buffers that the program writes are as before
//
// For whoever runs a program to learn something about it: shapes, time, equality. Copies tensors only where the program
// may write to what it did not make itself. Thread-safety: none.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

class StateKeeper {
 public:
  explicit StateKeeper(const GraphModule& module);
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;
  /// Puts parameters and buffers back to what they were: numbers, sizes and strides.
  ~StateKeeper();

 private:
  /// A tensor; another handle on its storage with its sizes and strides; a copy of all that the storage held.
  struct Saved {
    at::Tensor tensor, shape, bytes;
  };
  std::vector<Saved> saved_;
};

}  // namespace fx
