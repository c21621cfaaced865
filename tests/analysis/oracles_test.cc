// The analyses against their definitions on many graphs at once; what each promises beyond is in its own test.
#include <gtest/gtest.h>

#include <filesystem>

#include <fxgraph/text/parse.h>
#include "tests/analysis/boost_dominators.h"
#include "tests/support/analysis_oracles.h"
#include "tests/support/random_graph.h"

namespace fx::oracles_test {

void expect_all_agree(const Graph& graph, const std::string& name) {
  ASSERT_EQ(testing::disagreement_with_boost(graph), "") << name;
  ASSERT_EQ(testing::disagreement_on_dominators(graph), "") << name;
  ASSERT_EQ(testing::disagreement_on_liveness(graph), "") << name;
  ASSERT_EQ(testing::disagreement_on_reachability(graph), "") << name;
}

TEST(Oracles, AgreeOnTenThousandRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    auto options = testing::random_options(seed, seed % 100 == 0 ? 120 : 30);
    if (seed % 3 == 1) options.vocabulary = &testing::mutating_vocabulary();
    Graph graph = testing::random_graph(seed, options);
    if (seed % 5 == 0) graph.eliminate_dead_code([](const Node&) { return false; });
    expect_all_agree(graph, "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(Oracles, AgreeOnEveryCorpusGraph) {
  int graphs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/corpus")) {
    if (entry.path().extension() != ".fx") continue;
    expect_all_agree(load_graph_text(entry.path().string()), entry.path().string());
    ++graphs;
  }
  EXPECT_GE(graphs, 10);
}

}  // namespace fx::oracles_test
