// The order of passes that say before or after which others they run.
#include <gtest/gtest.h>

#include <algorithm>

#include <fxgraph/rewriter/pass_manager.h>
#include "tests/support/random.h"

namespace fx::pass_order_test {

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

}  // namespace fx::pass_order_test
