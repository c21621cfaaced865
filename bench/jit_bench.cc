// The yardstick: torch::jit on the same chain workload, in the same process.
#include <ATen/core/interned_strings.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/common_subexpression_elimination.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>

#include <memory>
#include <string>

#include "bench/harness.h"

namespace fx::bench {
namespace {

namespace jit = torch::jit;
using JitGraph = std::shared_ptr<jit::Graph>;

JitGraph jit_chain(std::int64_t blocks, bool dead = false) {
  auto graph = std::make_shared<jit::Graph>();
  jit::Value* x = graph->addInput("x");
  jit::Value* y = graph->addInput("y");
  jit::Value* one = graph->insertConstant(1);
  jit::Value* t = x;
  for (std::int64_t i = 0; i < blocks; ++i) {
    jit::Value* a = graph->insertNode(graph->create(c10::aten::add, {t, y, one}))->output();
    jit::Value* r = graph->insertNode(graph->create(c10::aten::relu, {a}))->output();
    if (dead) graph->insertNode(graph->create(c10::aten::neg, {r}));
    t = graph->insertNode(graph->create(c10::aten::mul, {r, y}))->output();
  }
  graph->registerOutput(t);
  return graph;
}

std::size_t size(const jit::Graph& graph) {
  const auto nodes = graph.nodes();
  return static_cast<std::size_t>(std::distance(nodes.begin(), nodes.end()));
}

// Times `work` on a fresh graph each round, making and freeing it off the clock.
template <typename Work>
void on_fresh_graphs(benchmark::State& state, bool dead, std::size_t nodes, Work work) {
  for (auto _ : state) {
    state.PauseTiming();
    JitGraph graph = jit_chain(state.range(0), dead);
    state.ResumeTiming();
    work(graph);
    state.PauseTiming();
    graph.reset();
    state.ResumeTiming();
  }
  count_nodes(state, nodes);
}

void BM_JitBuild(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(jit_chain(state.range(0)));
  count_nodes(state, chain_nodes(state));
}
BENCHMARK(BM_JitBuild)->Apply(peer_sizes);

void BM_JitClone(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  if (!verified(state, size(*graph->copy()) == size(*graph), "size of the copy")) return;
  for (auto _ : state) benchmark::DoNotOptimize(graph->copy());
  count_nodes(state, chain_nodes(state));
}
BENCHMARK(BM_JitClone)->Apply(peer_sizes);

void BM_JitLint(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  for (auto _ : state) graph->lint();
  count_nodes(state, chain_nodes(state));
}
BENCHMARK(BM_JitLint)->Apply(peer_sizes);

void BM_JitDeadCode(benchmark::State& state) {
  const JitGraph first = jit_chain(state.range(0), true);
  const std::size_t before = size(*first);
  jit::EliminateDeadCode(first);
  if (!verified(state, before - size(*first) == static_cast<std::size_t>(state.range(0)), "number of dead nodes"))
    return;
  on_fresh_graphs(state, true, chain_nodes(state) + static_cast<std::size_t>(state.range(0)),
                  [](JitGraph& graph) { jit::EliminateDeadCode(graph); });
}
BENCHMARK(BM_JitDeadCode)->Apply(peer_sizes);

void BM_JitCommonSubexpression(benchmark::State& state) {
  on_fresh_graphs(state, false, chain_nodes(state), [](JitGraph& graph) { jit::EliminateCommonSubexpression(graph); });
}
BENCHMARK(BM_JitCommonSubexpression)->Apply(peer_sizes);

constexpr const char* kHit = "graph(%x, %y, %o):\n %a = aten::add(%x, %y, %o)\n %r = aten::relu(%a)\n return (%r)";
constexpr const char* kMiss = "graph(%x, %y, %o):\n %a = aten::add(%x, %y, %o)\n %r = aten::sigmoid(%a)\n return (%r)";
constexpr const char* kReplacement =
    "graph(%x, %y, %o):\n %a = aten::sub(%x, %y, %o)\n %r = aten::relu6(%a)\n return (%r)";

void rewrite(benchmark::State& state, const char* pattern) {
  jit::SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern(pattern, kReplacement);
  on_fresh_graphs(state, false, chain_nodes(state), [&](JitGraph& graph) { rewriter.runOnGraph(graph); });
}
void BM_JitRewriteAll(benchmark::State& state) { rewrite(state, kHit); }
BENCHMARK(BM_JitRewriteAll)->Apply(peer_sizes);
void BM_JitMatchMiss(benchmark::State& state) { rewrite(state, kMiss); }
BENCHMARK(BM_JitMatchMiss)->Apply(peer_sizes);

void BM_JitPrint(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(graph->toString(false));
  count_nodes(state, chain_nodes(state));
}
BENCHMARK(BM_JitPrint)->Apply(peer_sizes);

}  // namespace
}  // namespace fx::bench
