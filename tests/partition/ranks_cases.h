// Small programs that are hard to take apart: views, writes, ties and values of all kinds where a cut may go.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx::testing {

struct RanksCase {
  const char* name;
  const char* text;  ///< FX text
  std::size_t stages;
  std::size_t micro_batches = 1;
  bool train = false;  ///< gradients are compared, too
};

/// The cases. Their inputs are x, float32[6, 4] and requiring no gradient, and whole numbers n, int64[6], where they
/// are asked for; weights w[4, 4], u[4, 4], tied to w, buffers seen[4] and count[], modules first, second and norm.
const std::vector<RanksCase>& ranks_cases();
/// The same in every process, and anew each time.
std::shared_ptr<GraphModule> ranks_module(const RanksCase& one);
std::vector<c10::IValue> ranks_inputs(const GraphModule& module, std::int64_t batch = 6);

}  // namespace fx::testing
