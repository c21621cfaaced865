// What the benchmarks share: sizes, counters, and the rule that a wrong answer is never timed.
//
// Every benchmark is named BM_<Work>/<blocks> and works on a graph of 3·blocks + 3 nodes (see testing::chain) unless
// its own comment says otherwise; its counterpart in torch::jit is BM_Jit<Work>/<blocks>, on the same graph in the same
// process. The counter `ns_per_node` is the time of one round divided by the nodes of the graph.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

namespace fx::bench {

/// 10^2 … 10^6 nodes.
inline void chain_sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int blocks : {33, 333, 3333, 10000, 33333, 333333}) benchmark->Arg(blocks);
  benchmark->Unit(benchmark::kMicrosecond);
}

/// The peers are run to 10^5 nodes: some of them are quadratic.
inline void peer_sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int blocks : {33, 333, 3333, 10000}) benchmark->Arg(blocks);
  benchmark->Unit(benchmark::kMicrosecond);
}

inline std::size_t chain_nodes(const benchmark::State& state) {
  return 3 * static_cast<std::size_t>(state.range(0)) + 3;
}

/// Sets `ns_per_node`.
inline void count_nodes(benchmark::State& state, std::size_t nodes) {
  state.counters["ns_per_node"] = benchmark::Counter(
      static_cast<double>(nodes) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Ends the benchmark with an error unless `right` holds. Call it before the timed loop.
inline bool verified(benchmark::State& state, bool right, const std::string& what) {
  if (!right) state.SkipWithError(("wrong answer: " + what).c_str());
  return right;
}

}  // namespace fx::bench
