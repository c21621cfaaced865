// Replacements whose result is a view of what they make.
#include <gtest/gtest.h>

#include <fxgraph/rewriter/replace_pattern.h>
#include "tests/support/short_graph.h"

namespace fx::made_views_test {

using testing::graph_of;

/// Why the one relu of the graph stays.
std::string refusal_of(Graph& graph, const char* replacement) {
  const RewriteReport report = replace_pattern(graph, "aten::relu(x)", replacement);
  return report.refused.size() == 1 ? report.refused[0].reason : "applied";
}

// A part of a wider result, or what was turned round and back, leaves gaps: no view of it is one of the whole, and a
// reshape that shared its storage copies.
TEST(ViewsOfWhatIsMade, LieOtherwise) {
  for (const char* replacement :
       {"aten::slice.Tensor(aten::relu(aten::cat([x, x], 1)), 1, 0, 4)",
        "aten::t(aten::contiguous(aten::t(aten::relu(x))))",
        "operator.getitem(aten::split_with_sizes(aten::relu(aten::cat([x, x], 1)), [4, 4], 1), "
        "0)"}) {
    for (const char* reader : {"aten::view(%r, [-1])", "aten::as_strided(%r, [2], [1])"}) {
      Graph graph = graph_of("r = aten::relu(%x)\nv = " + std::string(reader) + "\nreturn v");
      EXPECT_EQ(refusal_of(graph, replacement), "its replacement may lie in memory differently, and v depends on that");
    }
    Graph shared = graph_of("r = aten::relu(%x)\nv = aten::reshape(%r, [-1])\nw = aten::add_.Scalar(%v, 1)\nreturn r");
    EXPECT_EQ(refusal_of(shared, replacement), "its replacement may lie in memory differently, and v depends on that");
    Graph plain = graph_of("r = aten::relu(%x)\ns = aten::sum(%r)\nreturn s");
    EXPECT_EQ(replace_pattern(plain, "aten::relu(x)", replacement).applied, 1u);
  }
  // The same view of what lies alike.
  Graph graph = graph_of("m = aten::matmul(%x, %y)\nt = aten::t(%m)\nr = aten::rand_like(%t)\nreturn r", "x y");
  EXPECT_EQ(replace_pattern(graph, "aten::t(aten::matmul(x, y))", "aten::t(aten::mm(x, y))").applied, 1u);
}

// A call that lacks what it views fits its overload no more, and is a call all the same.
TEST(ViewsOfWhatIsMade, OfACallThatViewsNothing) {
  Graph graph = graph_of("t = aten::t()\nr = aten::rand_like(%t)\nreturn r");
  const RewriteReport report = replace_pattern(graph, "aten::t(...)", "aten::t(aten::zeros([2, 2]))");
  EXPECT_EQ(report.applied, 0u);
}

}  // namespace fx::made_views_test
