// Common subexpressions that are lists.
#include <gtest/gtest.h>

#include <string>

#include <fxgraph/rewriter/common_subexpression.h>
#include "tests/support/short_graph.h"

namespace fx::common_lists_test {

// Two lists of the same views are two lists for who changes one.
TEST(CommonLists, ListsThatChangeStayTwo) {
  const auto removed = [](const std::string& list, const std::string& change) {
    Graph graph = testing::graph_of("v = aten::sum(%x)\na = " + list + "\nb = " + list + "\n" + change +
                                        "\nt = aten::cat(%a)\nu = aten::cat(%b)\nreturn (t, u)",
                                    "x");
    return eliminate_common_subexpressions(graph);
  };
  for (const char* list : {"aten::unbind.int(%x, 0)", "aten::chunk(%x, 2)", "aten::split.Tensor(%x, 2)",
                           "call_method[target=unbind](%x)", "torch.unbind(%x)"}) {
    for (const char* change :
         {"c = aten::append.t(%b, %v)", "c = aten::pop.t(%b)", "c = aten::reverse.t(%b)", "c = aten::mul_.t(%b, 2)",
          "c = operator.setitem(%b, 0, %v)", "c = call_method[target=append](%b, %v)",
          "c = call_method[target=extend](%b, %a)", "c = aten::insert.t(%b, 0, %v)"})
      EXPECT_EQ(removed(list, change), 0u) << list << " " << change;
    EXPECT_EQ(removed(list, "c = aten::add_.Tensor(%x, 1)"), 1u) << list << ": their elements are views";
  }
}

}  // namespace fx::common_lists_test
