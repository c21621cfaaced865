#include <fxgraph/cli/torch/measures.h>

#include <fxgraph/analysis/liveness.h>
#include <fxgraph/rewriter/partition/stage_costs.h>

namespace fx::cli {

Measures measure(const GraphModule& module, const Shapes& shapes) {
  const Cost cost(module.graph(), shapes, module_costs(module));
  const Liveness live(module.graph(), shapes);
  return {cost.total().macs, static_cast<double>(live.peak().bytes)};
}

}  // namespace fx::cli
