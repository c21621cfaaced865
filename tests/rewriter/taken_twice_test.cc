// A view may not go where some later call writes to its tensor and takes that a second time.
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>
#include "tests/support/short_graph.h"

namespace fx::taken_twice_test {

using testing::graph_of;

/// What is reported when views of one dimension less are to be what they are views of; the graph stays as it was.
std::string refused(const std::string& body) {
  Graph graph = graph_of(body);
  const std::string before = print_graph(graph);
  std::ostringstream report;
  report << replace_pattern(graph, "aten::squeeze.dim(v, 0)", "v");
  EXPECT_EQ(print_graph(graph), before);
  return report.str();
}

TEST(TakenTwice, AWriterTakesTheVeryTensorAndAView) {
  EXPECT_EQ(refused("z = aten::zero_(%x)\ns = aten::squeeze.dim(%z, 0)\nw = aten::add_.Tensor(%s, %x)\nreturn w"),
            "applied 0; refused 1 (s: w writes, and would take z twice)");
}

TEST(TakenTwice, OneOfThemComesThroughWhatMayCopy) {
  EXPECT_EQ(refused("c = aten::contiguous(%x)\ns = aten::squeeze.dim(%x, 0)\nw = aten::add_.Tensor(%s, %c)\nreturn w"),
            "applied 0; refused 1 (s: w writes, and would take x twice)");
}

// Ways that part and meet again lead to few values, and are no reason to give up; many values are.
TEST(TakenTwice, HoweverManyViewsLieBetween) {
  for (const bool meeting : {false, true}) {
    for (const int length : {1, 8, 30, 31, 32, 33, 62, 63, 64, 65, 200}) {
      std::string body = "z = aten::zero_(%x)\ns = aten::squeeze.dim(%z, 0)\n", last = "s";
      for (int i = 0; i < length; ++i) {
        const std::string view = "v" + std::to_string(i), as = "u" + std::to_string(i);
        body += view + " = aten::view(%" + last + ", [-1])\n";
        if (meeting) body += as + " = aten::view_as(%" + view + ", %" + last + ")\n";
        last = meeting ? as : view;
      }
      const bool few = length * (meeting ? 2 : 1) < 64;
      EXPECT_EQ(refused(body + "w = aten::add_.Tensor(%" + last + ", %x)\nreturn w"),
                few ? "applied 0; refused 1 (s: w writes, and would take z twice)"
                    : "applied 0; refused 1 (s: too many values may be it, or a view of it, to look at)")
          << length;
    }
  }
}

}  // namespace fx::taken_twice_test
