// keep_float_for: the fewest layers that stay float so that the quantized program is as good as asked.
//
// Each layer is quantized alone and its noise at the results measured; the noises of different layers add up, nearly.
// So the layers are sorted by their noise, and the smallest number of the noisiest is looked for by bisection, each
// candidate measured. Cost: layers + log2(layers) runs of the reference form on the samples.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

/// How good the quantized program must be; both must hold.
struct QuantGoal {
  double min_sqnr_db = 0;    ///< of the results
  double min_agreement = 0;  ///< share of rows with the same largest element
};

/// What must stay float for that.
struct KeptFloat {
  std::vector<std::string> nodes;  ///< what stays float, noisiest first; for ConvertOptions::keep_float
  double sqnr_db = 0;              ///< then
  double agreement = 0;            ///< then
  std::size_t layers = 0;          ///< how many there were to choose from
};

/// `prepared` has seen its samples; `float_module` is what it was made from. `progress` is told how many of the layers
/// were measured. Throws Error(mismatch) when not even the float layers alone reach the goal, Error(invalid_argument)
/// without samples.
KeptFloat keep_float_for(const GraphModule& prepared, GraphModule& float_module,
                         const std::vector<std::vector<c10::IValue>>& samples, const QuantGoal& goal,
                         const std::function<void(std::size_t done, std::size_t of)>& progress = {});

}  // namespace fx
