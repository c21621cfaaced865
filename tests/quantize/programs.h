// Programs for the tests of quantization, and the slow, obviously right way to compute what they should.
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/quantize/quantize.h>

namespace fx::testing {

/// A program from statements (graph_of), with these tensors as attributes.
std::shared_ptr<GraphModule> program_of(const std::string& body, const std::string& inputs,
                                        const std::vector<std::pair<std::string, torch::Tensor>>& tensors);

using Samples = std::vector<std::vector<c10::IValue>>;

/// prepare, and a run on each of the samples.
std::shared_ptr<GraphModule> calibrated(const GraphModule& module, const Samples& samples,
                                        const QuantConfig& config = QuantConfig::defaults());

/// What the reference form should compute: the prepared program, in which every observed value and every quantized
/// weight is rounded in floats.
c10::IValue run_rounded(const GraphModule& prepared, const std::vector<c10::IValue>& inputs);

/// The largest scale among the quantize nodes and kernels of a converted program: one quantum at most.
double largest_quantum(const GraphModule& converted);

/// How many calls have a target that begins with `prefix`.
std::size_t count_prefix(const GraphModule& module, const std::string& prefix);

double largest_difference(const c10::IValue& a, const c10::IValue& b);

}  // namespace fx::testing
