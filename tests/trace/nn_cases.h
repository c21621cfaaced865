// Every module of torch::nn whose forward takes tensors, each with inputs: what the tests of tracing run through. One
// is missing: AdaptiveLogSoftmaxWithLoss chooses what to compute by its data, which no trace can hold.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <fxgraph/trace/tracer.h>

namespace fx::testing {

struct NnCase {
  std::string name;
  std::vector<c10::IValue> inputs;
  bool draws_in_training = false;  ///< random numbers
  std::shared_ptr<torch::nn::Module> module;
  std::function<Trace(Tracer& tracer, const std::vector<c10::IValue>& examples)> trace;
  /// The same with the module as the child "leaf" of the root.
  std::function<Trace(Tracer& tracer, const std::vector<c10::IValue>& examples)> trace_child;
  std::function<c10::IValue()> eager;
};

// Prints the name where GoogleTest would print bytes.
inline void PrintTo(const NnCase& c, std::ostream* out) { *out << c.name; }

/// Makes the modules anew, with equal parameters each time.
std::vector<NnCase> all_nn_cases();

/// The root of NnCase::trace_child.
struct Parent : torch::nn::Module {
  explicit Parent(const std::shared_ptr<torch::nn::Module>& leaf) : torch::nn::Module("Parent") {
    register_module("leaf", leaf);
    train(leaf->is_training());
  }
};

}  // namespace fx::testing
