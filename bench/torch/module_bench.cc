// A graph made ready to run.
#include <fxgraph/module/graph_module.h>
#include <fxgraph/run/plan.h>
#include "bench/harness.h"
#include "tests/support/random_graph.h"

namespace fx::bench {
namespace {

void recompile(benchmark::State& state, const Graph& graph) {
  GraphModule module(graph.clone());
  GraphModule small(testing::chain(2));
  const at::Tensor ones = at::ones({2});
  // ((1 + 1) · 1 + 1) · 1
  if (!verified(state, small.forward(ones, ones).equal(at::full({2}, 3.0)), "result of the plan")) return;
  time_reading(state, graph.size(), [&] {
    module.recompile();
    return module.plan().get();
  });
}

const bool module_registered = register_works({{.name = "Recompile", .time = recompile, .chain_only = true}});

}  // namespace
}  // namespace fx::bench
