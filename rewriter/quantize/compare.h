// compare_activations: how much each value of a quantized program differs from the float one's.
//
//   std::cout << fx::compare_activations(*gm, *int8, samples);      // worst node first, in dB
//
// The signal-to-quantization-noise ratio of a value is 10·log10(Σ x² / Σ (x − y)²) over all samples: 40 dB is an error
// of a hundredth. Values are told by their names, which convert() keeps.
//
// Thread-safety: none; both programs are run.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

/// How one value of the quantized program differs from the float one's, over all samples.
struct ActivationDifference {
  std::string node;      ///< in the quantized program
  std::string op;        ///< what makes it there
  double sqnr_db = 0;    ///< infinite when equal
  double largest = 0;    ///< absolute difference
  double magnitude = 0;  ///< the largest absolute value of the float program
};

/// All values that both programs have, and their results.
struct ActivationComparison {
  std::vector<ActivationDifference> nodes;  ///< worst first
  ActivationDifference output;              ///< of all results together
  /// Share of rows of the first result with the same largest element. Rows go along its last dimension; from four
  /// dimensions on along the second, where images have their classes.
  double agreement = 0;
  std::size_t samples = 0;  ///< sets of inputs that were run
};
/// Prints a table, worst node first.
std::ostream& operator<<(std::ostream& out, const ActivationComparison& comparison);
/// {"output": {…}, "agreement": …, "nodes": […]}: one JSON text.
std::string to_json(const ActivationComparison& comparison);

/// Runs both on each set of inputs. `float_module` is the program that `quantized` was made from. Throws
/// Error(invalid_argument) when there are no samples or their results do not correspond.
ActivationComparison compare_activations(const GraphModule& float_module, GraphModule& quantized,
                                         const std::vector<std::vector<c10::IValue>>& samples);
/// The same for programs of one input.
ActivationComparison compare_activations(const GraphModule& float_module, GraphModule& quantized,
                                         const std::vector<at::Tensor>& samples);

/// The ratio for the results alone, and the agreement; what keep-float searches by.
ActivationComparison compare_outputs(GraphModule& float_module, GraphModule& quantized,
                                     const std::vector<std::vector<c10::IValue>>& samples);

}  // namespace fx
