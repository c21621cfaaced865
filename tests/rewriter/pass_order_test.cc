// The order of passes that say before or after which others they run.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include <fxgraph/rewriter/pass_manager.h>
#include "tests/support/error_of.h"
#include "tests/support/random.h"

namespace fx::pass_order_test {

TEST(PassOrder, APassWithoutAFunctionIsRefused) {
  PassManager passes;
  EXPECT_EQ(testing::error_of([&] { passes.add("x", {}); }), "pass x: its function is empty; give one that runs");
  EXPECT_EQ(testing::error_of([&] {
              passes.add_until_stable("y", {{"step", PassFunction()}}, 3);
            }),
            "pass step: its function is empty; give one that runs");
  EXPECT_TRUE(passes.order().empty());
}

TEST(PassOrder, OfThoseThatWaitForNoneTheFirstAddedIsNext) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    testing::Random random(seed);
    const std::size_t count = 1 + random.below(7);
    std::vector<std::size_t> places(count);  // waits follow them, so that some order meets all
    for (std::size_t i = 0; i < count; ++i) std::swap(places[i] = i, places[random.below(i + 1)]);
    std::vector<std::vector<bool>> waits(count, std::vector<bool>(count, false));
    std::vector<PassConstraints> constraints(count);
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) {
        if (places[a] >= places[b] || !random.chance(30)) continue;
        waits[b][a] = true;
        const bool before = random.chance(50);
        if (before) constraints[a].before.push_back(std::to_string(b));
        if (!before || random.chance(20)) constraints[b].after.push_back(std::to_string(a));
      }
    }
    PassManager passes;
    for (std::size_t i = 0; i < count; ++i)
      passes.add(
          std::to_string(i), [](Graph&) {}, constraints[i]);
    std::vector<std::string> wanted;
    std::vector<bool> done(count, false);
    while (wanted.size() < count) {
      for (std::size_t i = 0; i < count; ++i) {
        bool ready = !done[i];
        for (std::size_t other = 0; other < count; ++other) ready = ready && (done[other] || !waits[i][other]);
        if (!ready) continue;
        done[i] = true;
        wanted.push_back(std::to_string(i));
        break;
      }
    }
    ASSERT_EQ(passes.order(), wanted) << seed;
  }
}

// A pass that breaks the graph is told so, where it was asked for; one that finds it broken is not.
TEST(Passes, AreLintedWhenTheyChangeSomething) {
  for (const bool lint : {false, true}) {
    for (const bool changes : {false, true}) {
      Graph graph;
      Node& x = graph.placeholder("x");
      Node& relu = graph.call_function("aten::relu", {x});
      Node& neg = graph.call_function("aten::neg", {relu});
      graph.output(neg);
      if (!changes) neg.append(relu);
      PassManagerOptions options;
      options.lint = lint;
      PassManager passes(options);
      passes.add("turn", [&](Graph&) {
        if (changes) neg.append(relu);
      });
      EXPECT_EQ(testing::error_of([&] { passes.run(graph); }) != "no error", lint && changes) << lint << changes;
    }
  }
}

TEST(Passes, SayHowLongTheyTook) {
  PassManager passes;
  passes.add("nothing", [](Graph&) {});
  Graph graph;
  std::ostringstream out;
  out << passes.run(graph);
  EXPECT_TRUE(out.str().starts_with("nothing  nothing to do  0.")) << out.str();
  EXPECT_TRUE(out.str().ends_with(" ms\n")) << out.str();
}

}  // namespace fx::pass_order_test
