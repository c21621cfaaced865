// The graph itself: build, clone, lint, dead code, print, parse.
#include <memory>
#include <vector>

#include "bench/harness.h"
#include "ops/effects.h"
#include "tests/support/random_graph.h"
#include "text/parse.h"
#include "text/print.h"

namespace fx::bench {
namespace {

using testing::chain;

std::size_t blocks_of(const benchmark::State& state) { return static_cast<std::size_t>(state.range(0)); }

// The chain with a dead `neg` of every relu: a quarter of it is dead.
Graph half_dead_chain(std::size_t blocks) {
  Graph graph = chain(blocks);
  for (Node* relu : graph.find_nodes(Op::call_function, "aten::relu")) {
    const auto scope = graph.inserting_after(*relu);
    graph.call_function("aten::neg", {relu});
  }
  return graph;
}

void BM_Build(benchmark::State& state) {
  const std::size_t nodes = chain_nodes(state);
  if (!verified(state, chain(blocks_of(state)).size() == nodes, "number of nodes")) return;
  for (auto _ : state) benchmark::DoNotOptimize(chain(blocks_of(state)));
  count_nodes(state, nodes);
  state.counters["bytes_per_node"] =
      static_cast<double>(chain(blocks_of(state)).memory_bytes()) / static_cast<double>(nodes);
}
BENCHMARK(BM_Build)->Apply(chain_sizes);

void BM_Clone(benchmark::State& state) {
  const Graph graph = chain(blocks_of(state));
  if (state.range(0) <= 333 && !verified(state, print_graph(graph.clone()) == print_graph(graph), "text of the copy"))
    return;
  for (auto _ : state) benchmark::DoNotOptimize(graph.clone());
  count_nodes(state, graph.size());
}
BENCHMARK(BM_Clone)->Apply(chain_sizes);

void BM_Lint(benchmark::State& state) {
  const Graph graph = chain(blocks_of(state));
  Graph broken = chain(1);
  broken.nodes().front().prepend(broken.nodes().back());
  if (!verified(state, graph.check().empty() && !broken.check().empty(), "violations")) return;
  for (auto _ : state) graph.lint();
  count_nodes(state, graph.size());
}
BENCHMARK(BM_Lint)->Apply(chain_sizes);

void BM_DeadCode(benchmark::State& state) {
  const std::size_t blocks = blocks_of(state);
  const Graph original = half_dead_chain(blocks);
  Graph first = original.clone();
  if (!verified(state, eliminate_dead_code(first) == blocks, "number of dead nodes")) return;
  for (auto _ : state) {
    state.PauseTiming();
    auto graph = std::make_unique<Graph>(original.clone());
    state.ResumeTiming();
    eliminate_dead_code(*graph);
    state.PauseTiming();
    graph.reset();
    state.ResumeTiming();
  }
  count_nodes(state, original.size());
}
BENCHMARK(BM_DeadCode)->Apply(chain_sizes);

void BM_Print(benchmark::State& state) {
  const Graph graph = chain(blocks_of(state));
  if (!verified(state, print_graph(parse_graph(print_graph(graph))) == print_graph(graph), "round trip")) return;
  for (auto _ : state) benchmark::DoNotOptimize(print_graph(graph));
  count_nodes(state, graph.size());
}
BENCHMARK(BM_Print)->Apply(chain_sizes);

void BM_Parse(benchmark::State& state) {
  const std::string text = print_graph(chain(blocks_of(state)));
  if (!verified(state, print_graph(parse_graph(text)) == text, "round trip")) return;
  for (auto _ : state) benchmark::DoNotOptimize(parse_graph(text));
  count_nodes(state, chain_nodes(state));
}
BENCHMARK(BM_Parse)->Apply(chain_sizes);

}  // namespace
}  // namespace fx::bench
