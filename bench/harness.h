// What the benchmarks share: sizes, counters, and the rule that a wrong answer is never timed.
//
// Every benchmark is named BM_<Work>/<blocks> on a chain of 3·blocks + 3 nodes (testing::chain), or
// BM_<Work>/<workload>/<size> on another graph (bench/workloads.cc); its counterparts in torch::jit and MLIR are
// BM_Jit<Work>/<blocks> and BM_Mlir<Work>/<blocks>, on the same graph in the same process.
//
// Counters: `ns_per_node` is CPU time of one round divided by the nodes of the graph. Others, such as
// `allocations_per_node`, do not depend on the machine.
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include "tests/support/allocations.h"

namespace fx::bench {

/// 10^2 … 10^6 nodes; slopes are read between 10^3 and 10^6.
inline constexpr int kChainSizes[] = {33, 333, 3333, 10000, 33333, 333333};
/// The peers stop at 30 003 nodes: some of them are quadratic.
inline void peer_sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int blocks : {33, 333, 3333, 10000}) benchmark->Arg(blocks);
  benchmark->Unit(benchmark::kMicrosecond);
}

inline std::size_t chain_nodes(const benchmark::State& state) {
  return 3 * static_cast<std::size_t>(state.range(0)) + 3;
}

/// Sets `ns_per_node`, when each iteration works on `nodes` nodes.
inline void count_nodes(benchmark::State& state, std::size_t nodes) {
  state.counters["ns_per_node"] = benchmark::Counter(
      static_cast<double>(nodes) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Sets a counter of something that one round does `count` times.
inline void count_per_node(benchmark::State& state, const std::string& name, std::size_t count, std::size_t nodes) {
  state.counters[name] = static_cast<double>(count) / static_cast<double>(nodes);
}

/// Ends the benchmark with an error unless `right` holds. Call it before the timed loop.
inline bool verified(benchmark::State& state, bool right, const std::string& what) {
  if (!right) state.SkipWithError(("wrong answer: " + what).c_str());
  return right;
}

/// Times `work()`, which changes nothing that the next round sees.
template <typename Work>
void time_reading(benchmark::State& state, std::size_t nodes, Work work) {
  benchmark::DoNotOptimize(work());  // caches and the arena's pool are warm from here on
  count_per_node(state, "allocations_per_node", testing::allocations_of([&] { benchmark::DoNotOptimize(work()); }),
                 nodes);
  for (auto _ : state) benchmark::DoNotOptimize(work());
  count_nodes(state, nodes);
}

inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Times `work(subject)` on what `make()` returned, made and freed off the clock; small ones in batches, so that
/// reading the clock does not count. The benchmark must be registered with UseManualTime.
template <typename Make, typename Work>
void time_editing(benchmark::State& state, std::size_t nodes, Make make, Work work) {
  const std::size_t batch = std::max<std::size_t>(1, 3000 / nodes);
  std::vector<decltype(make())> subjects;
  const auto refill = [&] {
    subjects.clear();
    for (std::size_t i = 0; i < batch; ++i) subjects.push_back(make());
  };
  refill();
  for (auto& subject : subjects) work(subject);
  refill();
  count_per_node(state, "allocations_per_node", testing::allocations_of([&] { work(subjects.front()); }), nodes);
  for (auto _ : state) {
    refill();
    const double start = cpu_seconds();
    for (auto& subject : subjects) work(subject);
    state.SetIterationTime(cpu_seconds() - start);
  }
  count_nodes(state, nodes * batch);
}

/// One row of the table of speed goals.
struct Work {
  const char* name;
  void (*time)(benchmark::State& state, const Graph& graph);
  bool edits = false;       ///< uses time_editing
  bool chain_only = false;  ///< its answer is known on chains only
};

/// Makes BM_<name> of each work, on chains of all sizes and on the other workloads. For use in static initialisers.
bool register_works(const std::vector<Work>& works);

}  // namespace fx::bench
