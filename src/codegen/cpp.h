// C++ source from a graph: a torch::nn::Module that compiles against LibTorch 1.13 and newer and gives the same
// outputs.
//
//   struct Net : torch::nn::Module {
//     Net() { fc_weight_ = add_tensor("fc.weight", torch::zeros({2, 4}, torch::kFloat), true); … }
//     torch::Tensor forward(torch::Tensor x) {
//       torch::Tensor fc = torch::linear(x, fc_weight_, fc_bias_);  x.reset();
//       return fc;
//     }
//     …
//   };
//
// One statement per node; values are let go of at their last use. Operators are written as the functions and methods
// that LibTorch has for them, others go through its dispatcher. Parameters and buffers are registered under their
// paths as files of TorchScript write them, so that torch::load(net, "net.pt") reads what fx::save, torch::save or
// TorchScript wrote. A call_module whose computation the graph does not hold (see fx::inline_modules) calls a member: a
// module that the constructor makes with its options, in its mode, or, for types of which it is not known how, a
// torch::nn::AnyModule that the user fills in.
//
// Cost: linear in the graph. Thread-safety: as the const functions of Graph.
#pragma once

#include <string>

#include <fxgraph/codegen/code.h>

namespace fx {

/// Returns a source file. Inputs annotated `int`, `float`, `bool`, `str` or `List[Tensor]`, or with such defaults, get
/// those types; the others are tensors. Throws Error(unsupported) naming the node for Python functions that C++ has
/// nothing for.
std::string cpp_code(const Graph& graph, const CodeOptions& options = {});

}  // namespace fx
