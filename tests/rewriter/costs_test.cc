// What works cost, in things that are counted: the same on every machine, so an extra allocation for each node or a
// search that looks at more than it must fails here and not only where time is measured (bench/).
#include <gtest/gtest.h>

#include <functional>

#include <fxgraph/analysis/dominators.h>
#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/analysis/use_def.h>
#include <fxgraph/codegen/python.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/matchers/pattern_set.h>
#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/support/allocations.h"
#include "tests/support/random_graph.h"
#include "tests/support/workloads.h"

namespace fx::costs_test {

using testing::chain;

constexpr std::size_t kSmall = 1000, kLarge = 11000;  // blocks
constexpr double kMoreNodes = 3 * (kLarge - kSmall);

const Pattern& hit() {
  static const Pattern pattern("aten::relu(aten::add.Tensor(x, y))");
  return pattern;
}
const Replacement& replacement() {
  static const Replacement made("aten::relu6(aten::sub.Tensor(x, y))");
  return made;
}

// ── Allocations ──────────────────────────────────────────────────────────────────────────────────────────────────────

struct Work {
  const char* name;
  double most;  // allocations for each node more
  std::function<void(Graph&)> run;
};

void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

class Allocations : public ::testing::TestWithParam<Work> {};

TEST_P(Allocations, PerNode) {
  const auto allocations_on_chain = [](std::size_t blocks) {
    Graph warm = chain(blocks);
    GetParam().run(warm);  // symbols, schemas and pools are filled
    Graph graph = chain(blocks);
    return static_cast<double>(testing::allocations_of([&] { GetParam().run(graph); }));
  };
  const double more = allocations_on_chain(kLarge) - allocations_on_chain(kSmall);
  EXPECT_LE(more / kMoreNodes, GetParam().most);
}

const Work kWorks[] = {
    {"Build", 0.01, [](Graph& graph) { chain(graph.size() / 3 - 1); }},
    {"Clone", 0.01, [](Graph& graph) { graph.clone(); }},
    {"Lint", 0.01, [](Graph& graph) { graph.lint(); }},
    {"DeadCode", 0.01,
     [](Graph& graph) {
       graph.erase_node(*graph.output_node());
       eliminate_dead_code(graph);
     }},
    {"CommonSubexpression", 0.01, [](Graph& graph) { eliminate_common_subexpressions(graph); }},
    {"Print", 0.01, [](Graph& graph) { print_graph(graph); }},
    {"Parse", 0.02, [](Graph& graph) { parse_graph(print_graph(graph)); }},
    {"Codegen", 6.1, [](Graph& graph) { python_code(graph); }},
    {"Dominators", 0.01, [](Graph& graph) { const Dominators tree(graph); }},
    {"Liveness", 0.01, [](Graph& graph) { const Liveness live(graph); }},
    {"Effects", 0.01, [](Graph& graph) { const Effects effects(graph); }},
    {"UseDef", 0.01, [](Graph& graph) { backward_slice(*graph.output_node()); }},
    {"MatchMiss", 0, [](Graph& graph) { find(graph, "aten::sigmoid(x)"); }},
    // Two for each match, which are a third of the nodes: its values and its nodes.
    {"MatchHit", 0.68, [](Graph& graph) { find(graph, hit()); }},
    {"RewriteAll", 0.02, [](Graph& graph) { replace_pattern(graph, hit(), replacement()); }},
};

INSTANTIATE_TEST_SUITE_P(Works, Allocations, ::testing::ValuesIn(kWorks),
                         [](const auto& info) { return info.param.name; });

TEST(Memory, PerNodeOfAChain) {
  for (const std::size_t blocks : {333, 3333, 33333}) {
    const Graph graph = chain(blocks);
    EXPECT_LE(graph.memory_bytes(), 160 * graph.size()) << blocks;
    EXPECT_LE(graph.clone().memory_bytes(), 160 * graph.size()) << blocks;
  }
}

// ── Searches ─────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Searches, LookAtEachAnchorOnce) {
  FindStats stats;
  EXPECT_EQ(find(chain(kSmall), hit(), {.stats = &stats}).size(), kSmall);
  EXPECT_EQ(stats.candidates, kSmall);
  const std::uint64_t visited = stats.nodes_visited;
  find(chain(kLarge), hit(), {.stats = &stats});
  EXPECT_EQ(stats.candidates, kLarge);
  EXPECT_EQ(stats.nodes_visited * kSmall, visited * kLarge);
  EXPECT_LE(visited, 4 * kSmall);
}

TEST(Searches, GiveUpNearMissesWhereTheyDiffer) {
  FindStats stats;
  EXPECT_TRUE(find(testing::near_misses(kSmall), hit(), {.stats = &stats}).empty());
  EXPECT_LE(stats.candidates, kSmall);
  EXPECT_LE(stats.nodes_visited, 2 * kSmall);
}

TEST(Searches, OfASetVisitNoMoreThanTheAnchorsAllow) {
  PatternSet set;
  for (const std::string& pattern : testing::patterns_not_in_chain(64)) set.add(pattern);
  ASSERT_EQ(set.size(), 64u);
  FindStats small, large;
  EXPECT_TRUE(set.find(chain(kSmall), {.stats = &small}).empty());
  EXPECT_TRUE(set.find(chain(kLarge), {.stats = &large}).empty());
  const double per_node = static_cast<double>(large.nodes_visited - small.nodes_visited) / kMoreNodes;
  EXPECT_LE(per_node, 64.0);  // a pattern starts at every third node, and fails after three steps at most
  EXPECT_LE(large.candidates, 8 * 3 * kLarge);
}

// ── Rewrites ─────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Rewrites, TryEachPlaceOnce) {
  Graph graph = chain(kSmall);
  const RewriteReport report = replace_pattern(graph, hit(), replacement());
  EXPECT_EQ(report.applied, kSmall);
  ASSERT_EQ(report.rules.size(), 1u);
  EXPECT_EQ(report.rules[0].tried, kSmall);
}

// Places tried in a run to the fixed point, for each node of the graph.
double tried_per_node(Graph graph, const RuleSet& rules, std::size_t applied) {
  const auto nodes = static_cast<double>(graph.size());
  DriverOptions options;
  options.allow_output_aliases = true;
  const RewriteReport report = rewrite_to_fixed_point(graph, rules, options);
  EXPECT_EQ(report.applied, applied);
  EXPECT_EQ(report.stop, RewriteStop::fixed_point);
  std::size_t tried = 0;
  for (const RuleReport& rule : report.rules) tried += rule.tried;
  return static_cast<double>(tried) / nodes;
}

TEST(Rewrites, OfACascadeCostWhatTheyChange) {
  const RuleSet rules = {
      {.name = "transposes", .pattern = "aten::transpose.int(aten::transpose.int(x, 0, 1), 0, 1)", .replacement = "x"}};
  EXPECT_LE(tried_per_node(testing::nested_transposes(10'000), rules, 5'000), 2.0);
}

TEST(Rewrites, OfOverlappingMatchesCostWhatTheyChange) {
  const RuleSet rules = {{.name = "relus", .pattern = "aten::relu(aten::relu(x))", .replacement = "aten::relu(x)"}};
  EXPECT_LE(tried_per_node(testing::nested_relus(10'000), rules, 9'999), 3.0);
}

}  // namespace fx::costs_test
