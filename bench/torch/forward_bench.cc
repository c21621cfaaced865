// Running a program: what GraphModule::run adds to each operator, beside torch::jit's interpreter and C++ that calls
// the operators itself, on a chain of operators that have next to nothing to do.
#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/torchscript/export.h>
#include "bench/harness.h"

namespace fx::bench {
namespace {

// neg, add, relu in turn, `operators` in all.
GraphModule chain(std::int64_t operators) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node* at = &x;
  for (std::int64_t i = 0; i < operators; ++i) {
    at = i % 3 == 0   ? &graph.call_function("aten::neg", {*at})
         : i % 3 == 1 ? &graph.call_function("aten::add.Tensor", {*at, x})
                      : &graph.call_function("aten::relu", {*at});
  }
  graph.output(*at);
  return GraphModule(std::move(graph));
}

at::Tensor eager(const at::Tensor& x, std::int64_t operators) {
  at::Tensor at = x;
  for (std::int64_t i = 0; i < operators; ++i)
    at = i % 3 == 0 ? at::neg(at) : i % 3 == 1 ? at::add(at, x) : at::relu(at);
  return at;
}

template <typename Run>
void time_forward(benchmark::State& state, Run run) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({4});
  if (!verified(state, at::equal(run(x), eager(x, state.range(0))), "forward")) return;
  for (auto _ : state) benchmark::DoNotOptimize(run(x));
  count_nodes(state, static_cast<std::size_t>(state.range(0)));
}

void BM_Forward(benchmark::State& state) {
  GraphModule module = chain(state.range(0));
  time_forward(state, [&](const at::Tensor& x) { return module.forward(x); });
}

// The interpreter alone: its executor's profiling and fusion are switched off.
void BM_JitForward(benchmark::State& state) {
  const bool optimized = torch::jit::getGraphExecutorOptimize();
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::Module module = to_torchscript(chain(state.range(0)));
  module.eval();
  time_forward(state, [&](const at::Tensor& x) { return module.forward({x}).toTensor(); });
  torch::jit::setGraphExecutorOptimize(optimized);
}

void BM_EagerForward(benchmark::State& state) {
  time_forward(state, [&](const at::Tensor& x) { return eager(x, state.range(0)); });
}

BENCHMARK(BM_Forward)->Arg(30)->Arg(3000)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_JitForward)->Arg(30)->Arg(3000)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_EagerForward)->Arg(30)->Arg(3000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fx::bench
