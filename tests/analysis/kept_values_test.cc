#include <gtest/gtest.h>

#include <fxgraph/analysis/effects.h>
#include "tests/support/short_graph.h"

namespace fx::kept_values_test {

// What a list is given, or a tensor's data is set to, is found in it from then on.
TEST(KeptValues, AreShared) {
  for (const char* call :
       {"aten::append.t(%l, %y)", "aten::_set_item.t(%l, 0, %y)", "aten::extend.t(%l, [%y])", "aten::add_.t(%l, [%y])",
        "operator.setitem(%l, 0, %y)", "builtins.setattr(%l, 'data', %y)"}) {
    const Graph graph = testing::graph_of(
        std::string("l = aten::chunk(%x, 2)\nk = ") + call + "\nt = aten::__getitem__.t(%l, 0)\nreturn t", "x y");
    const Effects effects(graph);
    EXPECT_TRUE(effects.may_alias(*graph.find("y"), *graph.find("t"))) << call;
  }
  const Graph copied = testing::graph_of("s = operator.setitem(%x, 0, %y)\nt = aten::view(%x, [-1])\nreturn t", "x y");
  EXPECT_FALSE(Effects(copied).may_alias(*copied.find("y"), *copied.find("t")));
}

// Lists add up and repeat, however they are spelt; what they hold is in the result.
TEST(KeptValues, AreSharedByListsThatAreAdded) {
  for (const char* first : {"operator.add(%l, %l)", "operator.mul(%l, 2)", "operator.mul(2, %l)", "aten::add.t(%l, %l)",
                            "operator.iadd(%l, %l)"}) {
    for (const char* second : {"operator.add(%m, %m)", "operator.add(%m, [%y])", "operator.mul(%m, 3)"}) {
      const Graph graph = testing::graph_of(std::string("l = call_method[target=unbind](%x)\nm = ") + first +
                                                "\nn = " + second + "\nt = operator.getitem(%n, 0)\nreturn t",
                                            "x y");
      const Effects effects(graph);
      EXPECT_TRUE(effects.may_alias(*graph.find("x"), *graph.find("t"))) << first << " " << second;
      EXPECT_TRUE(effects.may_alias(*graph.find("x"), *graph.find("n"))) << first << " " << second;
    }
  }
}

}  // namespace fx::kept_values_test
