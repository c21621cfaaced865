// Searches: what is not there, what is there, what nearly is, and many patterns at once.
#include <fxgraph/matchers/pattern_set.h>
#include "bench/harness.h"
#include "tests/support/random_graph.h"
#include "tests/support/workloads.h"

namespace fx::bench {
namespace {

constexpr const char* kHit = "aten::relu(aten::add.Tensor(x, y))";
constexpr const char* kMiss = "aten::sigmoid(aten::add.Tensor(x, y))";

void count_search(benchmark::State& state, const FindStats& stats, std::size_t nodes) {
  count_per_node(state, "candidates_per_node", stats.candidates, nodes);
  count_per_node(state, "visited_per_node", stats.nodes_visited, nodes);
}

// Times find() of what has `find(graph, options)`; `right` is the number of matches to expect.
template <typename Find>
void search(benchmark::State& state, const Graph& graph, std::size_t right, Find find) {
  FindStats stats;
  const std::size_t found = find(FindOptions{.stats = &stats}).size();
  if (!verified(state, found == right && stats.stop == SearchStop::complete, "number of matches")) return;
  count_search(state, stats, graph.size());
  time_reading(state, graph.size(), [&] { return find(FindOptions{}); });
}

// relu(add(x, y)) by hand, where nothing else uses the add and it has no alpha.
std::size_t hits(const Graph& graph) {
  std::size_t count = 0;
  for (const Node* relu : graph.find_nodes(Op::call_function, "aten::relu")) {
    const Node* add = relu->arg(0).node_or_null();
    const bool sum = add && add->is_call("aten::add.Tensor") && add->num_users() == 1 && add->args().size() == 2;
    const Argument* alpha = sum ? add->kwarg("alpha") : nullptr;
    count += sum && (!alpha || *alpha == Argument(1));
  }
  return count;
}

void match_by_hand(benchmark::State& state, const Graph& graph) {
  if (!verified(state, hits(graph) == graph.size() / 3 - 1, "number of matches")) return;
  time_reading(state, graph.size(), [&] { return hits(graph); });
}

void match_miss(benchmark::State& state, const Graph& graph) {
  const Pattern pattern(kMiss);
  search(state, graph, 0, [&](const FindOptions& options) { return find(graph, pattern, options); });
}

// The same as torch.fx prints it: what each node calls is worked out.
Graph in_python(const Graph& graph) {
  Graph spelt = graph.clone();
  for (Node& node : spelt.nodes()) {
    if (node.is_call("aten::relu")) node.set_target("torch.nn.functional.relu");
    if (node.is_call("aten::add.Tensor")) node.set_target("operator.add");
    if (node.is_call("aten::mul.Scalar")) node.set_target("torch.mul");
  }
  return spelt;
}

void match_miss_spelt(benchmark::State& state, const Graph& graph) {
  const Graph spelt = in_python(graph);
  const Pattern pattern(kMiss);
  search(state, spelt, 0, [&](const FindOptions& options) { return find(spelt, pattern, options); });
}

void match_hit_spelt(benchmark::State& state, const Graph& graph) {
  const Graph spelt = in_python(graph);
  const Pattern pattern(kHit);
  search(state, spelt, hits(graph), [&](const FindOptions& options) { return find(spelt, pattern, options); });
}

void match_hit(benchmark::State& state, const Graph& graph) {
  const Pattern pattern(kHit);
  search(state, graph, hits(graph), [&](const FindOptions& options) { return find(graph, pattern, options); });
}

void match_near_miss(benchmark::State& state, const Graph& graph) {
  const Graph near = testing::near_misses(graph.size() / 3 - 1);
  const Pattern pattern(kHit);
  search(state, near, 0, [&](const FindOptions& options) { return find(near, pattern, options); });
}

template <std::size_t Patterns, bool Definitions = false>
void match_set(benchmark::State& state, const Graph& graph) {
  PatternSet set;
  for (const std::string& pattern : testing::patterns_not_in_chain(Patterns)) set.add(pattern);
  if (!verified(state, set.size() == Patterns, "number of patterns")) return;
  search(state, graph, 0, [&](FindOptions options) {
    options.definitions = Definitions;
    return set.find(graph, options);
  });
}

const bool match_registered = register_works({
    {.name = "MatchMiss", .time = match_miss, .chain_only = true},
    {.name = "MatchMissSpelt", .time = match_miss_spelt, .chain_only = true},
    {.name = "MatchHitSpelt", .time = match_hit_spelt, .chain_only = true},
    {.name = "MatchMiss64", .time = match_set<64>, .chain_only = true},
    {.name = "MatchMiss64Defined", .time = match_set<64, true>, .chain_only = true},
    {.name = "MatchMiss200", .time = match_set<200>, .chain_only = true},
    {.name = "MatchNearMiss", .time = match_near_miss, .chain_only = true},
    {.name = "MatchHit", .time = match_hit},
    {.name = "MatchByHand", .time = match_by_hand, .chain_only = true},
});

}  // namespace
}  // namespace fx::bench
