// Tracing a function of 3·blocks operators, without shapes, with, and for other sizes, beside torch::jit's tracer on
// the same function.
#include <ATen/ops/rand.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <fxgraph/trace/symbolic_trace.h>
#include "bench/harness.h"

namespace fx::bench {
namespace {

at::Tensor chain(at::Tensor x, const at::Tensor& y, std::int64_t blocks) {
  for (std::int64_t i = 0; i < blocks; ++i) x = at::mul(at::relu(at::add(x, y)), y);
  return x;
}

auto program(const benchmark::State& state) {
  return [blocks = state.range(0)](at::Tensor x, at::Tensor y) { return chain(x, y, blocks); };
}

std::vector<c10::IValue> inputs() { return {at::rand({2, 3}), at::rand({2, 3})}; }

// `assertions` are the nodes that the trace adds for sizes.
void trace(benchmark::State& state, const std::vector<c10::IValue>& examples, const Sizes& sizes,
           std::size_t assertions = 0) {
  const std::vector<c10::IValue> values = inputs();
  const auto traced = symbolic_trace(program(state), examples, {.sizes = sizes});
  const at::Tensor expected = chain(values[0].toTensor(), values[1].toTensor(), state.range(0));
  if (!verified(state, traced->graph().size() == chain_nodes(state) + assertions, "size of the graph")) return;
  if (!verified(state, traced->run(values).toTensor().equal(expected), "result of the graph")) return;
  time_reading(state, chain_nodes(state), [&] { return Tracer({.sizes = sizes}).trace(program(state), examples); });
}

void BM_Trace(benchmark::State& state) { trace(state, {}, Sizes::fixed); }
BENCHMARK(BM_Trace)->Apply(peer_sizes);

void BM_TraceShapes(benchmark::State& state) { trace(state, inputs(), Sizes::fixed); }
BENCHMARK(BM_TraceShapes)->Apply(peer_sizes);

// Two dimensions of two inputs that agree: two sizes, a comparison and an assertion each.
void BM_TraceSizes(benchmark::State& state) { trace(state, inputs(), Sizes::any, 8); }
BENCHMARK(BM_TraceSizes)->Apply(peer_sizes);

void BM_JitTrace(benchmark::State& state) {
  const std::vector<c10::IValue> values = inputs();
  const auto call = [&](torch::jit::Stack stack) -> torch::jit::Stack {
    return {chain(stack[0].toTensor(), stack[1].toTensor(), state.range(0))};
  };
  const auto no_names = [](const at::Tensor&) { return std::string(); };
  time_reading(state, chain_nodes(state), [&] {
    return torch::jit::tracer::trace(values, call, no_names, /*strict=*/true, /*force_outplace=*/false).first->graph;
  });
}
BENCHMARK(BM_JitTrace)->Apply(peer_sizes);

}  // namespace
}  // namespace fx::bench
