// The graphs that works are timed on.
#include <functional>
#include <map>
#include <string>

#include "bench/harness.h"
#include "tests/support/random_graph.h"
#include "tests/support/workloads.h"

namespace fx::bench {

namespace {

struct Workload {
  const char* name;
  std::size_t size;  // 0: there is one size only
  Graph (*make)(std::size_t size);
};

Graph pointwise_dag(std::size_t nodes) {
  return testing::random_graph(11, {.nodes = nodes, .vocabulary = &testing::pointwise_vocabulary(), .all_live = true});
}

constexpr Workload kWorkloads[] = {
    {"fan", 30000, testing::fan},
    {"ladder", 10000, testing::ladder},
    {"dag", 30000, pointwise_dag},
    {"models", 30000, testing::model_mix},
    {"resnet18_aten", 0, [](std::size_t) { return testing::corpus_graph("export214_resnet18"); }},
    {"transformer_aten", 0, [](std::size_t) { return testing::corpus_graph("export214_transformer"); }},
    {"densenet121_modules", 0, [](std::size_t) { return testing::corpus_graph("torchfx113_densenet121"); }},
};

// Made when first asked for and kept: several works share each.
const Graph& graph_of(const std::string& name, std::size_t size, Graph (*make)(std::size_t)) {
  static std::map<std::string, Graph> graphs;
  const std::string key = name + "/" + std::to_string(size);
  const auto at = graphs.find(key);
  return at != graphs.end() ? at->second : graphs.emplace(key, make(size)).first->second;
}

void register_one(const Work& work, const std::string& name, std::size_t size, Graph (*make)(std::size_t)) {
  std::string full = std::string("BM_") + work.name;
  if (!name.empty()) full.append("/").append(name);
  if (size != 0) full.append("/").append(std::to_string(size));
  auto* made = benchmark::RegisterBenchmark(
      full.c_str(), [=](benchmark::State& state) { work.time(state, graph_of(name, size, make)); });
  made->Unit(benchmark::kMicrosecond);
  if (work.edits) made->UseManualTime();
}

}  // namespace

bool register_works(const std::vector<Work>& works) {
  for (const Work& work : works) {
    for (const int blocks : kChainSizes) register_one(work, "", static_cast<std::size_t>(blocks), testing::chain);
    if (work.chain_only) continue;
    for (const Workload& workload : kWorkloads) register_one(work, workload.name, workload.size, workload.make);
  }
  return true;
}

}  // namespace fx::bench
