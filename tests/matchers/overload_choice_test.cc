// What a call is decides which overload a pattern finds, also where the graph writes another one, or none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/matchers/matcher.h>
#include "tests/support/short_graph.h"

namespace fx::overload_choice_test {

using ::testing::ElementsAre;

std::vector<std::string> found(const char* pattern) {
  static const Graph graph = testing::graph_of(
      "sizes = aten::view(%x, [-1])\ntyped = aten::view(%x, torch.float32)\ndefault = aten::view.default(%x, "
      "torch.float32)\nmethod = call_method[target=view](%x, torch.float32)\nspelt = aten::view.dtype(%x, "
      "torch.float32)\nreturn x");
  std::vector<std::string> names;
  for (const Match& match : find(graph, pattern)) names.push_back(match.anchor().name());
  return names;
}

TEST(OverloadChoice, FollowsTheArguments) {
  EXPECT_THAT(found("aten::view.default(x, s)"), ElementsAre("sizes"));
  EXPECT_THAT(found("aten::view.dtype(x, s)"), ElementsAre("typed", "default", "method", "spelt"));
  EXPECT_THAT(found("aten::view(x, s)"), ElementsAre("sizes", "typed", "default", "method", "spelt"));
}

}  // namespace fx::overload_choice_test
