// Ten million nodes within 8 GB.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <string>

#include <fxgraph/rewriter/replace_pattern.h>
#include "tests/support/random_graph.h"

namespace fx::huge_test {

// The most memory that this process ever held, in bytes; 0 when the system does not say.
std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// By hand, with --gtest_also_run_disabled_tests: it needs 4 GB of memory and a quarter of a minute.
TEST(HugeNight, DISABLED_TenMillionNodesAreMatchedAndRewrittenWithin8GB) {
  constexpr std::size_t kBlocks = 3'333'333;
  const Pattern pattern("aten::relu(aten::add.Tensor(x, y))");
  Graph graph = testing::chain(kBlocks);
  EXPECT_EQ(graph.size(), 10'000'002u);
  graph.lint();
  const std::size_t built = peak_memory();
  EXPECT_EQ(find(graph, pattern).size(), kBlocks);
  const std::size_t matched = peak_memory();
  EXPECT_EQ(replace_pattern(graph, pattern, "aten::relu6(aten::sub.Tensor(x, y))").applied, kBlocks);
  graph.lint();
  EXPECT_EQ(graph.count(Op::call_function, "aten::relu6"), kBlocks);
  const std::size_t all = peak_memory();
  std::cout << "peak MiB: built " << (built >> 20) << ", matched " << (matched >> 20) << ", rewritten " << (all >> 20)
            << '\n';
  EXPECT_LE(all, std::size_t{8} << 30);
}

}  // namespace fx::huge_test
