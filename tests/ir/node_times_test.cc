// Medians and spreads of times, and of sums of them.
#include <fxgraph/ir/node_times.h>

#include <gtest/gtest.h>

namespace fx::node_times_test {

TEST(NodeTimes, AreSummarizedByMedianAndQuartiles) {
  const MeasuredTime time = summarize({5, 1, 9, 3, 7});
  EXPECT_EQ(time.seconds, 5);
  EXPECT_EQ(time.spread, 2);  // from 3 to 7
  EXPECT_EQ(time.runs, 5u);
  EXPECT_EQ(summarize({}).runs, 0u);
}

// The median of a sum is not the sum of medians.
TEST(NodeTimes, AreAddedRunByRun) {
  std::vector<double> sum;
  add_runs(sum, {1, 5, 3});
  add_runs(sum, {5, 1, 1});
  EXPECT_EQ(sum, (std::vector<double>{6, 6, 4}));
  EXPECT_EQ(summarize(sum).seconds, 6);
}

}  // namespace fx::node_times_test
